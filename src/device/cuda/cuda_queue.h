#pragma once
#include <string>

#include "base/result.h"
#include "device/cuda/cuda_device.h"
#include "device/queue.h"
#include "device/wait_pacer.h"

namespace foretoken::cuda {

// What a queue owns of its device.
struct CudaStreams {
  cudaStream_t main = nullptr;
  cudaStream_t second_lane = nullptr;
  cudaEvent_t forked = nullptr;  // recorded on the main stream,
  cudaEvent_t ended = nullptr;   // and on the second lane's
};

class CudaGraph final : public Graph {
 public:
  CudaGraph(cudaGraphExec_t exec, int num_nodes) : exec_(exec), num_nodes_(num_nodes) {}
  ~CudaGraph() override;
  int num_nodes() const override { return num_nodes_; }
  cudaGraphExec_t exec() const { return exec_; }

 private:
  cudaGraphExec_t exec_;
  int num_nodes_;
};

// One stream, and a second one for the other lane, made with the queue. The first CUDA error is
// kept with the name of the op after which it was seen; kernels run asynchronously, so the culprit
// may be an earlier op.
class CudaQueue final : public Queue {
 public:
  // `failure` is pinned memory that the kernels report to; it outlives the queue.
  static Result<std::unique_ptr<Queue>> make(const CudaKernels& kernels, int ordinal,
                                             PlanFailure* failure, const ProfilerRanges& ranges);
  CudaQueue(const CudaKernels& kernels, int ordinal, PlanFailure* failure,
            const ProfilerRanges& ranges, const CudaStreams& streams);
  ~CudaQueue() override;

  void launch_op(uint16_t op, const void* args, size_t args_bytes) override;
  void copy(void* dst, const void* src, size_t bytes) override;
  void fill(void* dst, int byte_value, size_t bytes) override;
  void call_host(void (*function)(void*), void* context) override;
  void record(Event event, uint64_t value) override;
  void fork() override;
  void use_lane(int lane) override;
  void join() override;
  void begin_capture() override;
  std::unique_ptr<Graph> end_capture() override;
  Status capture_error() const override { return capture_error_; }
  void replay(Graph& graph) override;
  Status wait(Event event, uint64_t value, std::chrono::milliseconds timeout) override;
  Status drain() override;

 private:
  bool ready();
  void check(cudaError_t status, const char* what);
  void poll();
  const Status& look_for_failure();

  const CudaKernels kernels_;
  const int ordinal_;
  PlanFailure* const failure_;
  const ProfilerRanges ranges_;
  const CudaStreams streams_;
  const cudaStream_t stream_;       // the main one
  cudaStream_t current_ = stream_;  // of the lane that ops go to
  bool is_forked_ = false;
  WaitPacer pacer_;
  const char* last_op_ = "start";
  bool capturing_ = false;
  Status error_;
  Status capture_error_;  // of the last capture
};

}  // namespace foretoken::cuda
