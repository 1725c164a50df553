#include "kernels/step/mark_time.h"

#include "kernels/step/delay.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

class MarkTimeTest : public DeviceTest {};

TEST_F(MarkTimeTest, TellsHowLongTheOpsBetweenTwoMarksTook) {
  auto* ns = allocate<int64_t>(3, MemoryKind::kPinned);
  mark_time(queue(), {&ns[0]});
  delay(queue(), {20000});
  mark_time(queue(), {&ns[1]});
  mark_time(queue(), {&ns[2]});
  drain();
  EXPECT_GE(ns[1] - ns[0], 19'000'000);
  EXPECT_LT(ns[1] - ns[0], 10'000'000'000);
  EXPECT_GE(ns[2], ns[1]);
}

TEST_F(MarkTimeTest, MarksInAGraphAreStoredAnewByEveryReplay) {
  auto* ns = allocate<int64_t>(1, MemoryKind::kPinned);
  queue().begin_capture();
  mark_time(queue(), {ns});
  const std::unique_ptr<Graph> graph = queue().end_capture();
  drain();
  EXPECT_EQ(*ns, 0);
  queue().replay(*graph);
  drain();
  const int64_t first = *ns;
  EXPECT_GT(first, 0);
  delay(queue(), {5000});
  queue().replay(*graph);
  drain();
  EXPECT_GT(*ns, first);
}

}  // namespace
}  // namespace foretoken
