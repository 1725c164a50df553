#pragma once
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "device/cpu/cpu_pool.h"
#include "device/queue.h"

namespace foretoken::cpu {

// One recorded op: what a CUDA graph node is on the CPU.
struct Task {
  enum class Kind : uint8_t { kOp, kCopy, kFill, kCall, kRecord, kReplay };
  Kind kind = Kind::kOp;
  uint16_t op = 0;
  int byte_value = 0;
  void* dst = nullptr;
  const void* src = nullptr;
  void (*function)(void*) = nullptr;  // of a host call; its context is dst
  uint64_t value = 0;                 // bytes of a copy or fill, or the event's value
  alignas(16) std::byte args[kMaxOpArgs];
};

class CpuGraph final : public Graph {
 public:
  explicit CpuGraph(std::vector<Task> tasks) : tasks_(std::move(tasks)) {}
  int num_nodes() const override { return static_cast<int>(tasks_.size()); }
  const std::vector<Task>& tasks() const { return tasks_; }

 private:
  std::vector<Task> tasks_;
};

// One worker thread that pops tasks from a bounded ring in order.
class CpuQueue final : public Queue {
 public:
  CpuQueue(const CpuKernels& kernels, int num_threads);
  ~CpuQueue() override;

  void launch_op(uint16_t op, const void* args, size_t args_bytes) override;
  void copy(void* dst, const void* src, size_t bytes) override;
  void fill(void* dst, int byte_value, size_t bytes) override;
  void call_host(void (*function)(void*), void* context) override;
  void record(Event event, uint64_t value) override;
  void begin_capture() override;
  std::unique_ptr<Graph> end_capture() override;
  void replay(Graph& graph) override;
  Status wait(Event event, uint64_t value, std::chrono::milliseconds timeout) override;
  Status drain() override;

 private:
  static constexpr size_t kRingSize = 1024;

  Task& begin_push();
  void end_push();
  void worker_main();
  void execute(const Task& task);
  void run_task(const Task& task);
  void wake_hosts();
  void fail(const char* what);

  const CpuKernels kernels_;
  CpuPool pool_;
  bool capturing_ = false;
  Task staging_;
  std::vector<Task> captured_;

  std::vector<Task> ring_;
  std::atomic<uint64_t> head_{0};  // next task to run; written by the worker
  std::atomic<uint64_t> tail_{0};  // next free place; written by the enqueuing thread
  std::atomic<bool> failed_{false};
  Status error_;  // written once before failed_
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable worker_wake_;
  std::condition_variable host_wake_;
  std::atomic<bool> worker_parked_{false};
  std::atomic<int> hosts_parked_{0};
  std::thread worker_;
};

}  // namespace foretoken::cpu
