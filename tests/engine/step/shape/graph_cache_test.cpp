#include "engine/step/shape/graph_cache.h"

#include "kernels/step/delay.h"
#include "support/counting_queue.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

class GraphCacheTest : public DeviceTest {
 protected:
  static StepShape shape(int rows, StepLaunch launch) {
    StepShape shape;
    shape.max_rows = rows;
    shape.launch = launch;
    return shape;
  }
  static void enqueue(Queue& on) { delay(on, {1}); }
};

TEST_F(GraphCacheTest, RecordsEachShapeOnce) {
  test::CountingQueue counting(queue());
  GraphCache cache(counting);
  const Recording* one = cache.get(shape(1, StepLaunch::kGraph), enqueue);
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(cache.get(shape(1, StepLaunch::kGraph), enqueue), one);
  EXPECT_NE(cache.get(shape(1, StepLaunch::kPieces), enqueue), one);
  EXPECT_NE(cache.get(shape(2, StepLaunch::kGraph), enqueue), one);
  EXPECT_EQ(cache.get(shape(1, StepLaunch::kOps), enqueue), nullptr);
  EXPECT_EQ(cache.size(), 3);
  EXPECT_EQ(counting.num_captures, 3);
  EXPECT_GT(cache.capture_ns(), 0);
}

TEST_F(GraphCacheTest, ForgetsWhatDrafts) {
  GraphCache cache(queue());
  StepShape drafts = shape(1, StepLaunch::kGraph);
  drafts.drafts[1].num_draft_tokens = 2;
  (void)cache.get(shape(1, StepLaunch::kGraph), enqueue);
  (void)cache.get(drafts, enqueue);
  cache.forget_drafts();
  EXPECT_EQ(cache.size(), 1);
}

// Such a shape is not tried again; others are.
TEST_F(GraphCacheTest, AShapeThatCannotBeRecordedRunsOpByOp) {
  test::CountingQueue counting(queue());
  counting.captures_left = 0;
  GraphCache cache(counting);
  EXPECT_EQ(cache.get(shape(1, StepLaunch::kGraph), enqueue), nullptr);
  EXPECT_EQ(cache.get(shape(1, StepLaunch::kGraph), enqueue), nullptr);
  EXPECT_EQ(counting.num_captures, 1);
  counting.captures_left = 1;
  EXPECT_NE(cache.get(shape(2, StepLaunch::kGraph), enqueue), nullptr);
}

}  // namespace
}  // namespace foretoken
