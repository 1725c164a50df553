#include "device/cpu/cpu_queue.h"

#include <chrono>
#include <cstring>
#include <exception>
#include <thread>

#include "base/check.h"
#include "base/result.h"
#include "base/spin.h"
#include "base/thread_role.h"
#include "device/cpu/cpu_thread.h"

namespace foretoken::cpu {
namespace {

constexpr int kQueueSpins = 2000;
constexpr auto kDrainPoll = std::chrono::microseconds(50);

template <class Args>
const Args& args_of(const void* args) {
  return *static_cast<const Args*>(args);
}

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

void CpuQueue::push(TaskName name, const void* args, size_t args_bytes) {
  if (capturing_) return captured_.add(name, args, args_bytes);
  const uint64_t tail = tail_.load(std::memory_order_relaxed);
  for (int spins = 0; tail - head_.load(std::memory_order_acquire) >= kRingSize; ++spins) {
    spin_pause(spins);
  }
  Task& task = ring_[tail % kRingSize];
  task.name = name;
  if (args_bytes > 0) std::memcpy(task.args, args, args_bytes);
  tail_.store(tail + 1, std::memory_order_seq_cst);
  if (worker_parked_.load(std::memory_order_seq_cst)) {
    {
      std::lock_guard lock(mutex_);
    }
    worker_wake_.notify_one();
  }
}

template <class Args>
void CpuQueue::push(TaskKind kind, const Args& args) {
  push(TaskName{kind, 0}, &args, sizeof args);
}

void CpuQueue::launch_op(uint16_t op, const void* args, size_t args_bytes) {
  FT_CHECK(op < kMaxOps && kernels_.ops[op] != nullptr && args_bytes <= kMaxOpArgs);
  push({TaskKind::kOp, op}, args, args_bytes);
}

void CpuQueue::copy(void* dst, const void* src, size_t bytes) {
  push(TaskKind::kCopy, CopyArgs{dst, src, bytes});
}

void CpuQueue::fill(void* dst, int byte_value, size_t bytes) {
  push(TaskKind::kFill, FillArgs{dst, byte_value, bytes});
}

void CpuQueue::call_host(void (*function)(void*), void* context) {
  push(TaskKind::kCall, CallArgs{function, context});
}

void CpuQueue::record(Event event, uint64_t value) {
  push(TaskKind::kRecord, RecordArgs{event.word, value});
}

void CpuQueue::begin_capture() {
  FT_CHECK(!capturing_);
  captured_.clear();
  capturing_ = true;
}

std::unique_ptr<Graph> CpuQueue::end_capture() {
  FT_CHECK(capturing_);
  capturing_ = false;
  return std::make_unique<CpuGraph>(captured_);
}

void CpuQueue::replay(Graph& graph) {
  FT_CHECK(!capturing_);
  push(TaskKind::kReplay, ReplayArgs{&static_cast<const CpuGraph&>(graph)});
}

Status CpuQueue::wait(Event event, uint64_t value, std::chrono::milliseconds timeout) {
  const auto done = [&] {
    return failed_.load(std::memory_order_seq_cst) ||
           event.word->load(std::memory_order_seq_cst) >= value;
  };
  int spins = 0;
  while (!done() && spins < kQueueSpins) spin_pause(spins++);
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
    if (spins < kQueueSpins) {
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
    while (tail_.load(std::memory_order_acquire) == head && spins < kQueueSpins) {
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
    if (task.name.kind != TaskKind::kReplay) return run_task(task.name, task.args);
    args_of<ReplayArgs>(task.args).graph->for_each(
        [this](TaskName name, const void* args) { run_task(name, args); });
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

void CpuQueue::run_task(TaskName name, const void* args) {
  bool stores_event = false;
  switch (name.kind) {
    case TaskKind::kOp:
      kernels_.ops[name.op](args, pool_);
      stores_event = kernels_.stores_event[name.op];
      break;
    case TaskKind::kCopy: {
      const auto& copy = args_of<CopyArgs>(args);
      std::memcpy(copy.dst, copy.src, copy.bytes);
      break;
    }
    case TaskKind::kFill: {
      const auto& fill = args_of<FillArgs>(args);
      std::memset(fill.dst, fill.byte_value, fill.bytes);
      break;
    }
    case TaskKind::kCall: {
      const auto& call = args_of<CallArgs>(args);
      call.function(call.context);
      break;
    }
    case TaskKind::kRecord: {
      const auto& record = args_of<RecordArgs>(args);
      record.word->store(record.value, std::memory_order_seq_cst);
      stores_event = true;
      break;
    }
    case TaskKind::kReplay:
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
