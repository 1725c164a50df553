#include "device/cpu/cpu_queue.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "device/cpu/cpu_device.h"
#include "support/gate.h"

namespace foretoken::cpu {
namespace {

struct CountArgs {
  int64_t* total;
};

// Op 0 adds one to a plain integer, over the pool; op 1 fails; op 2 waits for a word.
void count_op(const void* args, CpuPool& pool) {
  std::atomic<int64_t> sum{0};
  pool.parallel_for(8, [&](int64_t index, int) { sum += index; });
  *static_cast<const CountArgs*>(args)->total += sum == 28 ? 1 : 1000;
}
void fail_op(const void*, CpuPool&) { throw std::runtime_error("the planted failure"); }

struct GateArgs {
  std::atomic<bool>* open;
};
void gate_op(const void* args, CpuPool&) {
  while (!static_cast<const GateArgs*>(args)->open->load()) std::this_thread::yield();
}

class CpuQueueTest : public testing::Test {
 protected:
  CpuQueueTest() {
    CpuKernels kernels;
    kernels.ops[0] = count_op;
    kernels.ops[1] = fail_op;
    kernels.ops[2] = gate_op;
    device_ = open_cpu_device(kernels, 3).value();
    queue_ = device_->make_queue().value();
  }
  void count() {
    const CountArgs args{&total_};
    queue_->launch_op(0, &args, sizeof args);
  }
  void fail() { queue_->launch_op(1, &total_, sizeof total_); }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Queue> queue_;
  int64_t total_ = 0;
  std::atomic<uint64_t> word_{0};
};

TEST_F(CpuQueueTest, TheFirstErrorStays) {
  count();
  ASSERT_TRUE(queue_->drain().ok());
  fail();
  count();
  queue_->record({&word_}, 1);
  const Status first = queue_->wait({&word_}, 1, test::kPatience);
  EXPECT_FALSE(first.ok());
  EXPECT_NE(first.message().find("the planted failure"), std::string::npos) << first.message();
  const Status second = queue_->drain();
  EXPECT_EQ(second.message(), first.message());
  EXPECT_EQ(total_, 1) << "ops after an error must be skipped";
  EXPECT_EQ(word_.load(), 0u);
}

TEST_F(CpuQueueTest, AnErrorInsideAGraphSkipsTheRest) {
  queue_->begin_capture();
  count();
  fail();
  count();
  const auto graph = queue_->end_capture();
  EXPECT_EQ(graph->num_nodes(), 3);
  queue_->replay(*graph);
  queue_->replay(*graph);
  EXPECT_FALSE(queue_->drain().ok());
  EXPECT_EQ(total_, 1);
}

TEST_F(CpuQueueTest, AnErrorWakesAParkedWaiter) {
  std::atomic<bool> open{false};
  const GateArgs gate{&open};
  queue_->launch_op(2, &gate, sizeof gate);
  fail();
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    open = true;
  });
  EXPECT_FALSE(queue_->wait({&word_}, 1, test::kPatience).ok());
  opener.join();
}

TEST_F(CpuQueueTest, ArgumentsAreCopiedWhenEnqueued) {
  std::atomic<bool> open{false};
  const GateArgs gate{&open};
  queue_->launch_op(2, &gate, sizeof gate);
  int64_t other = 0;
  CountArgs args{&total_};
  queue_->launch_op(0, &args, sizeof args);
  args.total = &other;
  queue_->launch_op(0, &args, sizeof args);
  args.total = nullptr;
  open = true;
  ASSERT_TRUE(queue_->drain().ok());
  EXPECT_EQ(total_, 1);
  EXPECT_EQ(other, 1);
}

TEST_F(CpuQueueTest, TheHostReadsWhatWasWrittenBeforeARecord) {
  for (uint64_t n = 1; n <= 3000; ++n) {
    count();
    queue_->record({&word_}, n);
    ASSERT_TRUE(queue_->wait({&word_}, n, test::kPatience).ok());
    ASSERT_EQ(total_, static_cast<int64_t>(n));
  }
}

TEST_F(CpuQueueTest, DestructionRunsWhatIsEnqueued) {
  for (int i = 0; i < 100; ++i) count();
  queue_.reset();
  EXPECT_EQ(total_, 100);
}

}  // namespace
}  // namespace foretoken::cpu
