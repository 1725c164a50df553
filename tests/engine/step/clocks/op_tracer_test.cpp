#include "engine/step/clocks/op_tracer.h"

#include "kernels/step/delay.h"
#include "kernels/step/mark_time.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

class OpTracerTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    auto inner = device().make_queue();
    ASSERT_TRUE(inner.ok());
    auto tracer = OpTracer::create(device(), std::move(inner).value(), 4);
    ASSERT_TRUE(tracer.ok()) << tracer.status().message();
    tracer_ = std::move(tracer).value();
  }
  std::vector<TraceLane::Event> events(int64_t offset_ns = 0) {
    EXPECT_TRUE(tracer_->drain().ok());
    TraceLane lane("ops", 16, {});
    tracer_->add_to(&lane, offset_ns);
    return lane.events();
  }
  static constexpr auto kStepOp = static_cast<uint16_t>(Op::kMarkTime);

  std::unique_ptr<OpTracer> tracer_;
};

TEST_F(OpTracerTest, MarksWhenOpsOfAStepBeginAndEnd) {
  auto* mark = allocate<int64_t>(1, MemoryKind::kPinned);
  delay(*tracer_, {1000});  // before the start: not marked
  tracer_->start(kStepOp);
  mark_time(*tracer_, {mark});
  delay(*tracer_, {3000});
  mark_time(*tracer_, {mark});
  const std::vector<TraceLane::Event> found = events(1000);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_STREQ(found[1].name, "delay");
  EXPECT_EQ(found[1].number, 0u);
  EXPECT_EQ(found[2].number, 1u);
  EXPECT_GE(found[1].end_ns - found[1].begin_ns, 2'900'000);
  EXPECT_LE(found[0].end_ns, found[1].begin_ns);
  EXPECT_LE(found[1].end_ns, found[2].begin_ns);
  EXPECT_EQ(events(0)[1].begin_ns + 1000, found[1].begin_ns);
}

TEST_F(OpTracerTest, OpsBeyondTheRoomRunUnmarked) {
  auto* mark = allocate<int64_t>(1, MemoryKind::kPinned);
  tracer_->start(kStepOp);
  for (int i = 0; i < 6; ++i) delay(*tracer_, {0});
  mark_time(*tracer_, {mark});
  EXPECT_EQ(events().size(), 4u);
  EXPECT_GT(*mark, 0);
}

TEST_F(OpTracerTest, GraphsPassThrough) {
  auto* mark = allocate<int64_t>(1, MemoryKind::kPinned);
  tracer_->start(kStepOp);
  tracer_->begin_capture();
  mark_time(*tracer_, {mark});
  const std::unique_ptr<Graph> graph = tracer_->end_capture();
  tracer_->replay(*graph);
  EXPECT_TRUE(events().empty());
  EXPECT_GT(*mark, 0);
  EXPECT_EQ(graph->num_nodes(), 1);
}

}  // namespace
}  // namespace foretoken
