#include "device/cuda/cuda_queue.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/clock.h"
#include "base/sleep_exactly.h"
#include "base/spin.h"

namespace foretoken::cuda {
namespace {

constexpr int64_t kPollNs = 2'000'000;

__global__ void record_kernel(unsigned long long* word, unsigned long long value) {
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

// Launched without programmatic dependence: it starts when all before it have ended, those of
// another lane included, and lets the kernel behind it rely on that (kernels/cuda/common.cuh).
__global__ void meet_lane_kernel() {}

// A pause of the host that goes on to look at errors now and then.
void rest(int64_t ns) {
  if (ns == 0) return spin_pause(0);
  sleep_exactly(std::min(ns, kPollNs));
}

}  // namespace

CudaGraph::~CudaGraph() { cudaGraphExecDestroy(exec_); }

Result<std::unique_ptr<Queue>> CudaQueue::make(const CudaKernels& kernels, int ordinal,
                                               PlanFailure* failure, const ProfilerRanges& ranges) {
  CudaStreams streams;
  cudaError_t status = cudaSetDevice(ordinal);
  for (cudaStream_t* stream : {&streams.main, &streams.second_lane}) {
    if (status == cudaSuccess) status = cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
  }
  for (cudaEvent_t* event : {&streams.forked, &streams.ended}) {
    if (status == cudaSuccess) status = cudaEventCreateWithFlags(event, cudaEventDisableTiming);
  }
  if (status != cudaSuccess) {
    return internal_error(std::string("cannot create a CUDA stream: ") +
                          cudaGetErrorString(status));
  }
  return std::unique_ptr<Queue>(
      std::make_unique<CudaQueue>(kernels, ordinal, failure, ranges, streams));
}

CudaQueue::CudaQueue(const CudaKernels& kernels, int ordinal, PlanFailure* failure,
                     const ProfilerRanges& ranges, const CudaStreams& streams)
    : kernels_(kernels),
      ordinal_(ordinal),
      failure_(failure),
      ranges_(ranges),
      streams_(streams),
      stream_(streams.main) {}

CudaQueue::~CudaQueue() {
  cudaSetDevice(ordinal_);
  for (const cudaStream_t stream : {streams_.main, streams_.second_lane}) {
    cudaStreamSynchronize(stream);
    kernels_.forget_stream(stream);
    cudaStreamDestroy(stream);
  }
  cudaEventDestroy(streams_.forked);
  cudaEventDestroy(streams_.ended);
}

// Whether more work may be enqueued; the calling thread is on the queue's device afterwards.
bool CudaQueue::ready() {
  if (!look_for_failure().ok()) return false;
  check(cudaSetDevice(ordinal_), "set device");
  return error_.ok() && (!capturing_ || capture_error_.ok());
}

// An error while ops are recorded spoils the graph, not the queue: nothing of it has run.
void CudaQueue::check(cudaError_t status, const char* what) {
  Status& kept = capturing_ ? capture_error_ : error_;
  if (status == cudaSuccess || !kept.ok()) return;
  Status error = internal_error(std::string("CUDA error at ") + what + ": " +
                                cudaGetErrorName(status) + ", " + cudaGetErrorString(status));
  std::swap(kept, error);
}

// The queue's status, after a look at what kernels reported.
const Status& CudaQueue::look_for_failure() {
  const uint64_t failed =
      error_.ok() ? std::atomic_ref(failure_->failed).load(std::memory_order_acquire) : 0;
  if (failed == kGroupEnded) {
    Status error =
        internal_error(failure_->reason[0] != '\0' ? failure_->reason
                                                   : "device queue: the group of ranks has ended");
    std::swap(error_, error);
  } else if (failed != 0) {
    Status error =
        internal_error("device queue: plan of step " + std::to_string(failure_->plan_step) +
                       " found in the ring entry of step " + std::to_string(failure_->step) +
                       ", or it exceeds its limits");
    std::swap(error_, error);
  }
  return error_;
}

void CudaQueue::launch_op(uint16_t op, const void* args, size_t args_bytes) {
  FT_CHECK(op < kernels_.num_ops && kernels_.ops[op].launch != nullptr);
  FT_CHECK(args_bytes <= kMaxOpArgs);
  if (!ready()) return;
  last_op_ = kernels_.ops[op].name;
  if (ranges_.begin != nullptr) ranges_.begin(last_op_, kNoRangeNumber);
  kernels_.ops[op].launch(args, current_);
  if (ranges_.end != nullptr) ranges_.end();
  check(cudaGetLastError(), last_op_);
}

void CudaQueue::copy(void* dst, const void* src, size_t bytes) {
  if (bytes == 0 || !ready()) return;
  last_op_ = "copy";
  check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, current_), last_op_);
}

void CudaQueue::fill(void* dst, int byte_value, size_t bytes) {
  if (bytes == 0 || !ready()) return;
  last_op_ = "fill";
  check(cudaMemsetAsync(dst, byte_value, bytes, current_), last_op_);
}

void CudaQueue::call_host(void (*function)(void*), void* context) {
  if (!ready()) return;
  last_op_ = "host call";
  check(cudaLaunchHostFunc(current_, function, context), last_op_);
}

void CudaQueue::record(Event event, uint64_t value) {
  if (!ready()) return;
  last_op_ = "record";
  record_kernel<<<1, 1, 0, current_>>>(reinterpret_cast<unsigned long long*>(event.word), value);
  check(cudaGetLastError(), last_op_);
}

void CudaQueue::fork() {
  FT_CHECK(!is_forked_);
  is_forked_ = true;
  if (!ready()) return;
  last_op_ = "fork";
  check(cudaEventRecord(streams_.forked, stream_), last_op_);
  check(cudaStreamWaitEvent(streams_.second_lane, streams_.forked, 0), last_op_);
  meet_lane_kernel<<<1, 1, 0, streams_.second_lane>>>();
  check(cudaGetLastError(), last_op_);
}

void CudaQueue::use_lane(int lane) {
  FT_CHECK(is_forked_ && (lane == 0 || lane == 1));
  current_ = lane == 0 ? streams_.main : streams_.second_lane;
}

void CudaQueue::join() {
  FT_CHECK(is_forked_);
  is_forked_ = false;
  current_ = stream_;
  if (!ready()) return;
  last_op_ = "join";
  check(cudaEventRecord(streams_.ended, streams_.second_lane), last_op_);
  check(cudaStreamWaitEvent(stream_, streams_.ended, 0), last_op_);
  meet_lane_kernel<<<1, 1, 0, stream_>>>();
  check(cudaGetLastError(), last_op_);
}

void CudaQueue::begin_capture() {
  FT_CHECK(!capturing_ && !is_forked_);
  capture_error_ = look_for_failure();
  capturing_ = true;
  if (!ready()) return;
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "begin capture");
}

std::unique_ptr<Graph> CudaQueue::end_capture() {
  FT_CHECK(capturing_);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  size_t num_nodes = 0;
  // Also ends a capture that failed.
  check(cudaStreamEndCapture(stream_, &graph), "end capture");
  if (capture_error_.ok()) check(cudaGraphGetNodes(graph, nullptr, &num_nodes), "capture");
  if (capture_error_.ok()) check(cudaGraphInstantiate(&exec, graph, 0), "graph instantiation");
  if (capture_error_.ok()) check(cudaGraphUpload(exec, stream_), "graph upload");
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();
  capturing_ = false;
  if (capture_error_.ok()) return std::make_unique<CudaGraph>(exec, static_cast<int>(num_nodes));
  if (exec != nullptr) cudaGraphExecDestroy(exec);
  return nullptr;
}

void CudaQueue::replay(Graph& graph) {
  FT_CHECK(!capturing_);
  if (!ready()) return;
  last_op_ = "graph";
  check(cudaGraphLaunch(static_cast<CudaGraph&>(graph).exec(), stream_), last_op_);
}

// Looks for an error of a kernel that ran; costs no synchronisation.
void CudaQueue::poll() {
  if (!ready()) return;
  const cudaError_t status = cudaStreamQuery(stream_);
  if (status != cudaErrorNotReady) check(status, last_op_);
}

Status CudaQueue::wait(Event event, uint64_t value, std::chrono::milliseconds timeout) {
  const auto done = [&] { return event.word->load(std::memory_order_acquire) >= value; };
  if (!error_.ok()) return look_for_failure();
  int64_t now = now_ns();
  const int64_t deadline = now + std::chrono::nanoseconds(timeout).count();
  int64_t next_poll = now + kPollNs;
  pacer_.begin(now);
  while (!done()) {
    now = now_ns();
    const bool late = now > deadline;
    if (late || now >= next_poll) {
      poll();
      if (!error_.ok()) return error_;
      if (late && !done()) return aborted("timed out waiting for the device queue");
      next_poll = now + kPollNs;
    }
    rest(pacer_.sleep_ns(now));
  }
  pacer_.end(now_ns());
  return look_for_failure();
}

Status CudaQueue::drain() {
  FT_CHECK(!capturing_);
  if (ready()) check(cudaStreamSynchronize(stream_), last_op_);
  return look_for_failure();
}

}  // namespace foretoken::cuda
