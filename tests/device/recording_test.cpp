#include "device/recording.h"

#include "kernels/op.h"
#include "kernels/step/delay.h"
#include "support/counting_queue.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

class RecordingTest : public DeviceTest {
 protected:
  // Ones, a delay, twos over the first half: three ops, one of which may stay out.
  void enqueue(Queue& on, uint8_t* bytes) {
    on.fill(bytes, 1, 100);
    delay(on, {10});
    on.fill(bytes, 2, 50);
  }
  static bool is_delay(uint16_t op) { return op == static_cast<uint16_t>(Op::kDelay); }
};

TEST_F(RecordingTest, OneGraphOrGraphsWithOpsBetween) {
  test::CountingQueue counting(queue());
  for (const Recorder::StaysOut stays_out : {Recorder::StaysOut{nullptr}, &is_delay}) {
    auto* bytes = allocate<uint8_t>(100);
    Recorder recorder(counting, stays_out);
    enqueue(recorder, bytes);
    const auto recording = recorder.finish();
    ASSERT_TRUE(recording.ok()) << recording.status().message();
    EXPECT_EQ(read(bytes, 100)[0], 0) << "recording must not run anything";
    EXPECT_EQ(recording.value().num_nodes(), 3);
    counting.clear();
    recording.value().replay(counting);
    EXPECT_EQ(counting.num_replays, stays_out == nullptr ? 1 : 2);
    EXPECT_EQ(counting.num_ops, stays_out == nullptr ? 0 : 1);
    const auto after = read(bytes, 100);
    EXPECT_EQ(after[49], 2);
    EXPECT_EQ(after[50], 1);
  }
}

TEST_F(RecordingTest, OpsAtTheEndsLeaveNoEmptyGraphs) {
  test::CountingQueue counting(queue());
  Recorder recorder(counting, &is_delay);
  delay(recorder, {1});
  delay(recorder, {1});
  auto* bytes = allocate<uint8_t>(8);
  recorder.fill(bytes, 7, 8);
  delay(recorder, {1});
  const auto recording = recorder.finish();
  ASSERT_TRUE(recording.ok());
  for (int round = 0; round < 2; ++round) {
    counting.clear();
    recording.value().replay(counting);
    EXPECT_EQ(counting.num_launches(), 4);
  }
  EXPECT_EQ(read(bytes, 8)[7], 7);
}

// What two lanes leave is there behind the join, and neither sees the other's part before.
TEST_F(RecordingTest, TwoLanesWithinOneGraph) {
  test::CountingQueue counting(queue());
  auto* bytes = allocate<uint8_t>(64);
  Recorder recorder(counting, nullptr);
  recorder.fill(bytes, 1, 64);
  recorder.fork();
  for (const int lane : {0, 1}) {
    recorder.use_lane(lane);
    recorder.fill(bytes + 16 * lane, 2 + lane, 16);
    delay(recorder, {10});
  }
  recorder.use_lane(0);
  recorder.copy(bytes + 32, bytes, 16);
  recorder.join();
  recorder.copy(bytes + 48, bytes + 16, 16);
  const auto recording = recorder.finish();
  ASSERT_TRUE(recording.ok()) << recording.status().message();
  EXPECT_EQ(counting.num_forks, 1);
  for (int round = 0; round < 2; ++round) {
    counting.clear();
    recording.value().replay(counting);
    EXPECT_EQ(counting.num_launches(), 1);
  }
  const auto after = read(bytes, 64);
  EXPECT_EQ(after[0], 2);
  EXPECT_EQ(after[16], 3);
  EXPECT_EQ(after[32], 2);
  EXPECT_EQ(after[63], 3);
}

TEST_F(RecordingTest, AFailedCaptureHarmsNothing) {
  test::CountingQueue refusing(queue());
  refusing.captures_left = 1;
  auto* bytes = allocate<uint8_t>(100);
  Recorder recorder(refusing, &is_delay);
  enqueue(recorder, bytes);
  const auto recording = recorder.finish();
  EXPECT_FALSE(recording.ok());
  EXPECT_EQ(recording.status().message(), test::CountingQueue::kRefusal);
  EXPECT_EQ(read(bytes, 100)[0], 0);
  enqueue(refusing, bytes);
  EXPECT_EQ(read(bytes, 100)[0], 2);
}

}  // namespace
}  // namespace foretoken
