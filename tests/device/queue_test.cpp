#include "device/queue.h"

#include "kernels/plan_layout.h"
#include "kernels/step/delay.h"
#include "kernels/step/publish.h"
#include "support/gate.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

using std::chrono::milliseconds;

class QueueTest : public DeviceTest {};

TEST_F(QueueTest, RunsInOrder) {
  const std::vector<int32_t> first(1000, 1), second(1000, 2);
  int32_t* a = to_device(first);
  int32_t* b = to_device(second);
  int32_t* c = allocate<int32_t>(1000);
  const size_t bytes = 1000 * sizeof(int32_t);
  queue().copy(c, a, bytes);
  queue().copy(a, b, bytes);
  queue().fill(b, 0xff, bytes);
  queue().copy(b, c, bytes / 2);
  EXPECT_EQ(read(a, 1000), second);
  EXPECT_EQ(read(c, 1000), first);
  const auto mixed = read(b, 1000);
  EXPECT_EQ(mixed[499], 1);
  EXPECT_EQ(mixed[500], -1);
}

TEST_F(QueueTest, MemoryIsZeroAndAligned) {
  for (const MemoryKind kind : {MemoryKind::kDevice, MemoryKind::kPinned}) {
    for (int i = 0; i < 5; ++i) {
      const auto* memory = allocate<uint8_t>(1000, kind);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 256, 0u);
      for (const uint8_t byte : read(memory, 1000)) ASSERT_EQ(byte, 0);
    }
  }
}

TEST_F(QueueTest, RecordReleasesAWaiterAlsoAfterItParked) {
  auto* word = allocate<std::atomic<uint64_t>>(1, MemoryKind::kPinned);
  for (uint64_t value = 1; value <= 20; ++value) {
    delay(queue(), {value % 4 == 0 ? 20000 : 0});
    queue().record({word}, value);
    ASSERT_TRUE(queue().wait({word}, value, test::kPatience).ok());
    ASSERT_EQ(word->load(), value);
  }
}

TEST_F(QueueTest, WaitTimesOut) {
  auto* word = allocate<std::atomic<uint64_t>>(1, MemoryKind::kPinned);
  const auto begin = std::chrono::steady_clock::now();
  const Status status = queue().wait({word}, 1, milliseconds(50));
  EXPECT_EQ(status.code(), StatusCode::kAborted) << status.message();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(50));
  queue().record({word}, 1);
  EXPECT_TRUE(queue().wait({word}, 1, test::kPatience).ok());
}

// A graph is enqueued several times before its first run ends: whatever differs from run to run
// must come from device memory, here the step counter of publish.
TEST_F(QueueTest, AGraphCanBeInFlightManyTimes) {
  const ResultLimits limits{2, 0, 0, 0};
  const int64_t entry_bytes = result_bytes(limits);
  char* ring =
      allocate<char>(static_cast<size_t>(entry_bytes) * kStepRingSize, MemoryKind::kPinned);
  char* result = allocate<char>(static_cast<size_t>(entry_bytes));
  auto* step = allocate<uint64_t>(1);
  auto* word = allocate<std::atomic<uint64_t>>(1, MemoryKind::kPinned);
  const auto source = to_device(std::vector<int32_t>{17, 4});
  auto* target = allocate<int32_t>(2);
  queue().begin_capture();
  delay(queue(), {2000});
  queue().copy(target, source, 2 * sizeof(int32_t));
  publish(queue(), {step, result, limits, 0, 0, ring, entry_bytes, word});
  const std::unique_ptr<Graph> graph = queue().end_capture();
  drain();
  EXPECT_EQ(word->load(), 0u) << "recording must not run anything";
  EXPECT_EQ(read(target, 2), (std::vector<int32_t>{0, 0}));
  EXPECT_GE(graph->num_nodes(), 3);
  test::Gate gate;
  queue().call_host([](void* held) { EXPECT_TRUE(static_cast<test::Gate*>(held)->wait()); }, &gate);
  for (int i = 0; i < 5; ++i) queue().replay(*graph);
  EXPECT_EQ(word->load(), 0u);
  gate.open();
  EXPECT_TRUE(queue().wait({word}, 5, test::kPatience).ok());
  EXPECT_EQ(read(target, 2), (std::vector<int32_t>{17, 4}));
  EXPECT_EQ(read(step, 1)[0], 5u);
}

TEST_F(QueueTest, TwoGraphsKeepTheirOwnOps) {
  auto* a = allocate<int32_t>(1);
  queue().begin_capture();
  queue().fill(a, 1, sizeof(int32_t));
  const auto ones = queue().end_capture();
  queue().begin_capture();
  queue().fill(a, 2, sizeof(int32_t));
  const auto twos = queue().end_capture();
  queue().replay(*ones);
  EXPECT_EQ(read(a, 1)[0], 0x01010101);
  queue().replay(*twos);
  EXPECT_EQ(read(a, 1)[0], 0x02020202);
}

// Doubles the first number of the context into the second.
void double_first(void* context) {
  auto* numbers = static_cast<int32_t*>(context);
  numbers[1] = 2 * numbers[0];
}

TEST_F(QueueTest, HostCallsRunInOrderWithTheOpsAroundThem) {
  auto* numbers = allocate<int32_t>(2, MemoryKind::kPinned);
  const int32_t* source = to_device(std::vector<int32_t>{21});
  auto* target = allocate<int32_t>(1);
  delay(queue(), {2000});
  queue().copy(numbers, source, sizeof(int32_t));
  queue().call_host(double_first, numbers);
  queue().copy(target, numbers + 1, sizeof(int32_t));
  EXPECT_EQ(read(target, 1)[0], 42);
}

// Each run takes the number that the run before left and hands on its double.
TEST_F(QueueTest, HostCallsAreCaptured) {
  auto* numbers = allocate<int32_t>(2, MemoryKind::kPinned);
  auto* value = to_device(std::vector<int32_t>{3});
  auto* word = allocate<std::atomic<uint64_t>>(1, MemoryKind::kPinned);
  queue().begin_capture();
  delay(queue(), {1000});
  queue().copy(numbers, value, sizeof(int32_t));
  queue().call_host(double_first, numbers);
  queue().copy(value, numbers + 1, sizeof(int32_t));
  const std::unique_ptr<Graph> graph = queue().end_capture();
  drain();
  EXPECT_EQ(numbers[1], 0) << "recording must not run anything";
  EXPECT_GE(graph->num_nodes(), 4);
  for (int i = 0; i < 6; ++i) queue().replay(*graph);
  queue().record({word}, 1);
  ASSERT_TRUE(queue().wait({word}, 1, test::kPatience).ok());
  EXPECT_EQ(numbers[1], 3 << 6);
  EXPECT_EQ(read(value, 1)[0], 3 << 6);
}

TEST_F(QueueTest, MoreTasksThanTheRingHolds) {
  auto* word = allocate<std::atomic<uint64_t>>(1, MemoryKind::kPinned);
  delay(queue(), {5000});
  for (uint64_t i = 1; i <= 5000; ++i) queue().record({word}, i);
  drain();
  EXPECT_EQ(word->load(), 5000u);
}

}  // namespace
}  // namespace foretoken
