#pragma once
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "device/cpu/cpu_graph.h"
#include "device/cpu/cpu_pool.h"
#include "device/queue.h"

namespace foretoken::cpu {

// A place of the ring.
struct Task {
  TaskName name;
  alignas(16) std::byte args[kMaxOpArgs];
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

  template <class Args>
  void push(TaskKind kind, const Args& args);
  void push(TaskName name, const void* args, size_t args_bytes);
  void worker_main();
  void execute(const Task& task);
  void run_task(TaskName name, const void* args);
  void wake_hosts();
  void fail(const char* what);

  const CpuKernels kernels_;
  CpuPool pool_;
  bool capturing_ = false;
  CpuGraph captured_;

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
