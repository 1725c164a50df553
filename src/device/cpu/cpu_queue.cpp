#include "device/cpu/cpu_queue.h"

#include <chrono>
#include <exception>
#include <thread>

#include "base/check.h"
#include "base/result.h"
#include "base/spin.h"
#include "base/thread_role.h"
#include "device/cpu/cpu_thread.h"

namespace foretoken::cpu {
namespace {

constexpr int kSpinsBeforePark = 2000;
constexpr auto kDrainPoll = std::chrono::microseconds(50);

}  // namespace

CpuQueue::CpuQueue(const CpuKernels& kernels, int num_threads)
    : kernels_(kernels), pool_(num_threads), ring_(kRingSize), worker_([this] { worker_main(); }) {}

CpuQueue::~CpuQueue() {
  {
    std::lock_guard lock(mutex_);
    stop_.store(true);
  }
  worker_wake_.notify_all();
  worker_.join();
}

Task& CpuQueue::begin_push() {
  if (capturing_) return staging_;
  const uint64_t tail = tail_.load(std::memory_order_relaxed);
  for (int spins = 0; tail - head_.load(std::memory_order_acquire) >= kRingSize; ++spins) {
    spin_pause(spins);
  }
  return ring_[tail % kRingSize];
}

void CpuQueue::end_push() {
  if (capturing_) {
    captured_.push_back(staging_);
    return;
  }
  tail_.store(tail_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
  if (worker_parked_.load(std::memory_order_seq_cst)) {
    {
      std::lock_guard lock(mutex_);
    }
    worker_wake_.notify_one();
  }
}

void CpuQueue::launch_op(uint16_t op, const void* args, size_t args_bytes) {
  FT_CHECK(op < kMaxOps && kernels_.ops[op] != nullptr && args_bytes <= kMaxOpArgs);
  Task& task = begin_push();
  task.kind = Task::Kind::kOp;
  task.op = op;
  std::memcpy(task.args, args, args_bytes);
  end_push();
}

void CpuQueue::copy(void* dst, const void* src, size_t bytes) {
  Task& task = begin_push();
  task.kind = Task::Kind::kCopy;
  task.dst = dst;
  task.src = src;
  task.value = bytes;
  end_push();
}

void CpuQueue::fill(void* dst, int byte_value, size_t bytes) {
  Task& task = begin_push();
  task.kind = Task::Kind::kFill;
  task.dst = dst;
  task.byte_value = byte_value;
  task.value = bytes;
  end_push();
}

void CpuQueue::call_host(void (*function)(void*), void* context) {
  Task& task = begin_push();
  task.kind = Task::Kind::kCall;
  task.function = function;
  task.dst = context;
  end_push();
}

void CpuQueue::record(Event event, uint64_t value) {
  Task& task = begin_push();
  task.kind = Task::Kind::kRecord;
  task.dst = event.word;
  task.value = value;
  end_push();
}

void CpuQueue::begin_capture() {
  FT_CHECK(!capturing_);
  captured_.clear();
  capturing_ = true;
}

std::unique_ptr<Graph> CpuQueue::end_capture() {
  FT_CHECK(capturing_);
  capturing_ = false;
  return std::make_unique<CpuGraph>(std::move(captured_));
}

void CpuQueue::replay(Graph& graph) {
  FT_CHECK(!capturing_);
  Task& task = begin_push();
  task.kind = Task::Kind::kReplay;
  task.src = &static_cast<const CpuGraph&>(graph).tasks();
  end_push();
}

Status CpuQueue::wait(Event event, uint64_t value, std::chrono::milliseconds timeout) {
  const auto done = [&] {
    return failed_.load(std::memory_order_seq_cst) ||
           event.word->load(std::memory_order_seq_cst) >= value;
  };
  int spins = 0;
  while (!done() && spins < kSpinsBeforePark) spin_pause(spins++);
  bool in_time = true;
  if (!done()) {
    std::unique_lock lock(mutex_);
    hosts_parked_.fetch_add(1, std::memory_order_seq_cst);
    in_time = host_wake_.wait_for(lock, timeout, done);
    hosts_parked_.fetch_sub(1, std::memory_order_relaxed);
  }
  if (failed_.load(std::memory_order_acquire)) return error_;
  if (!in_time) return aborted("timed out waiting for the device queue");
  return {};
}

Status CpuQueue::drain() {
  const uint64_t tail = tail_.load(std::memory_order_relaxed);
  for (int spins = 0; head_.load(std::memory_order_acquire) < tail; ++spins) {
    if (spins < kSpinsBeforePark) {
      spin_pause(spins);
    } else {
      // Long waits leave the core to the threads that compute.
      std::this_thread::sleep_for(kDrainPoll);
    }
  }
  return failed_.load(std::memory_order_acquire) ? error_ : Status();
}

void CpuQueue::worker_main() {
  set_thread_role(ThreadRole::kWorker, "ft-worker");
  init_worker_thread();
  uint64_t head = 0;
  for (;;) {
    int spins = 0;
    while (tail_.load(std::memory_order_acquire) == head && spins < kSpinsBeforePark) {
      spin_pause(spins++);
    }
    if (tail_.load(std::memory_order_acquire) == head) {
      std::unique_lock lock(mutex_);
      worker_parked_.store(true, std::memory_order_seq_cst);
      worker_wake_.wait(
          lock, [&] { return tail_.load(std::memory_order_seq_cst) != head || stop_.load(); });
      worker_parked_.store(false, std::memory_order_relaxed);
      if (tail_.load(std::memory_order_acquire) == head) return;
    }
    execute(ring_[head % kRingSize]);
    head_.store(++head, std::memory_order_release);
  }
}

void CpuQueue::execute(const Task& task) {
  if (failed_.load(std::memory_order_relaxed)) return;
  try {
    if (task.kind != Task::Kind::kReplay) {
      run_task(task);
      return;
    }
    for (const Task& recorded : *static_cast<const std::vector<Task>*>(task.src)) {
      run_task(recorded);
    }
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

void CpuQueue::run_task(const Task& task) {
  bool stores_event = false;
  switch (task.kind) {
    case Task::Kind::kOp:
      kernels_.ops[task.op](task.args, pool_);
      stores_event = kernels_.stores_event[task.op];
      break;
    case Task::Kind::kCopy:
      std::memcpy(task.dst, task.src, task.value);
      break;
    case Task::Kind::kFill:
      std::memset(task.dst, task.byte_value, task.value);
      break;
    case Task::Kind::kCall:
      task.function(task.dst);
      break;
    case Task::Kind::kRecord:
      static_cast<std::atomic<uint64_t>*>(task.dst)->store(task.value, std::memory_order_seq_cst);
      stores_event = true;
      break;
    case Task::Kind::kReplay:
      FT_CHECK_MSG(false, "a graph inside a graph");
  }
  if (stores_event) wake_hosts();
}

void CpuQueue::wake_hosts() {
  if (hosts_parked_.load(std::memory_order_seq_cst) > 0) {
    {
      std::lock_guard lock(mutex_);
    }
    host_wake_.notify_all();
  }
}

void CpuQueue::fail(const char* what) {
  {
    std::lock_guard lock(mutex_);
    error_ = internal_error(std::string("device queue: ") + what);
    failed_.store(true, std::memory_order_seq_cst);
  }
  host_wake_.notify_all();
}

}  // namespace foretoken::cpu
