#include "kernels/comm/stage_exchange.h"

#include <cstddef>

#include "kernels/comm/cuda/comm_exchange.cuh"
#include "kernels/comm/cuda/nccl_ops.h"
#include "kernels/comm/cuda/rank_ops.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kPiece = static_cast<int>(kCommBlockBytes / int64_t{sizeof(float4)});
// Of a step that a block tells: one message, so that nobody need read it before the next op runs.
constexpr int kRowsEach = 1024;
static_assert((kStepHeaderInts + kStepLists * kRowsEach) * int64_t{sizeof(int32_t)} <=
              kCommBlockBytes);

// Messages of one block to the same block of the next stage. All threads call it alike. A slot is
// written again when what was sent two messages before has been read.
class ToNextStage {
 public:
  __device__ explicit ToNextStage(const CommView& comm)
      : comm_(comm), next_((comm.rank + 1) % comm.size), number_(comm.sent[blockIdx.x]) {
    __syncthreads();
  }
  // Where the next message goes.
  __device__ char* open() {
    ++number_;
    if (threadIdx.x == 0) {
      wait_for_number(comm_, comm_.acks[comm_.rank] + blockIdx.x, number_ - 2);
    }
    __syncthreads();
    const int64_t index = (int64_t{number_ % 2} * comm_.size + comm_.rank) * kCommBlocks;
    return comm_.slots[next_] + (index + blockIdx.x) * kCommBlockBytes;
  }
  __device__ void close() const {
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) {
      store_release(comm_.flags[next_] + blockIdx.x * kMaxRanks + comm_.rank, number_);
    }
  }
  __device__ void end() const {
    __syncthreads();
    if (threadIdx.x == 0) comm_.sent[blockIdx.x] = number_;
  }

 private:
  const CommView& comm_;
  const int next_;
  uint32_t number_;
};

class FromStageBefore {
 public:
  __device__ explicit FromStageBefore(const CommView& comm)
      : comm_(comm),
        before_((comm.rank + comm.size - 1) % comm.size),
        number_(comm.received[blockIdx.x]) {
    __syncthreads();
  }
  // Waits for the next message.
  __device__ const char* open() {
    ++number_;
    if (threadIdx.x == 0) {
      wait_for_number(comm_, comm_.flags[comm_.rank] + blockIdx.x * kMaxRanks + before_, number_);
    }
    __syncthreads();
    const int64_t index = (int64_t{number_ % 2} * comm_.size + before_) * kCommBlocks;
    return comm_.slots[comm_.rank] + (index + blockIdx.x) * kCommBlockBytes;
  }
  // It has been read.
  __device__ void close() const {
    __syncthreads();
    if (threadIdx.x == 0) store_release(comm_.acks[before_] + blockIdx.x, number_);
  }
  __device__ void end() const {
    __syncthreads();
    if (threadIdx.x == 0) comm_.received[blockIdx.x] = number_;
  }

 private:
  const CommView& comm_;
  const int before_;
  uint32_t number_;
};

__device__ int32_t load_int(const int32_t* from) {
  return static_cast<int32_t>(load_fresh(reinterpret_cast<const uint32_t*>(from)));
}

// Every block tells the counts and its rows of each list.
__global__ void __launch_bounds__(kThreads) send_step_kernel(SendStepArgs args, CommView comm) {
  wait_for_previous();
  let_next_start();
  const StepTensors& tensors = args.tensors;
  const int begin = static_cast<int>(blockIdx.x) * kRowsEach;
  const int rows = min(max(tensors.counts->num_rows - begin, 0), kRowsEach);
  ToNextStage link(comm);
  auto* message = reinterpret_cast<int32_t*>(link.open());
  if (threadIdx.x < kStepHeaderInts) {
    message[threadIdx.x] = reinterpret_cast<const int32_t*>(tensors.counts)[threadIdx.x];
  }
  for (int i = 0; i < kStepLists; ++i) {
    const int32_t* list = step_list(tensors, i);
    if (list == nullptr) continue;
    int32_t* to = message + kStepHeaderInts + i * kRowsEach;
    for (int row = threadIdx.x; row < rows; row += kThreads) to[row] = list[begin + row];
  }
  link.close();
  link.end();
  if (args.counter != nullptr && blockIdx.x == 0 && threadIdx.x == 0) ++*args.counter;
}

__global__ void __launch_bounds__(kThreads)
    receive_step_kernel(ReceiveStepArgs args, CommView comm) {
  wait_for_previous();
  let_next_start();
  const StepTensors& tensors = args.tensors;
  const int begin = static_cast<int>(blockIdx.x) * kRowsEach;
  FromStageBefore link(comm);
  const auto* message = reinterpret_cast<const int32_t*>(link.open());
  const int live = load_int(message + offsetof(StepCounts, num_rows) / sizeof(int32_t));
  const int rows = min(max(args.max_rows - begin, 0), kRowsEach);
  if (blockIdx.x == 0 && threadIdx.x < kStepHeaderInts) {
    reinterpret_cast<int32_t*>(tensors.counts)[threadIdx.x] = load_int(message + threadIdx.x);
  }
  for (int i = 0; i < kStepLists; ++i) {
    int32_t* list = step_list(tensors, i);
    if (list == nullptr) continue;
    const int32_t padding = list == tensors.row_slot ? args.num_slots : 0;
    const int32_t* from = message + kStepHeaderInts + i * kRowsEach;
    for (int row = threadIdx.x; row < rows; row += kThreads) {
      list[begin + row] = begin + row < live ? load_int(from + row) : padding;
    }
  }
  link.close();
  link.end();
  if (args.stamps != nullptr && blockIdx.x == 0 && threadIdx.x == 0) {
    args.stamps[*args.step % kStepRingSize].begin_ns = global_nanoseconds();
  }
}

__global__ void __launch_bounds__(kThreads) send_rows_kernel(SendRowsArgs args, CommView comm) {
  wait_for_previous();
  let_next_start();
  const int64_t count = int64_t{min(args.counts->num_rows, args.max_rows)} * args.cols / 4;
  const auto* x = reinterpret_cast<const float4*>(args.x);
  ToNextStage link(comm);
  for (int64_t begin = int64_t{blockIdx.x} * kPiece; begin < count;
       begin += int64_t{gridDim.x} * kPiece) {
    auto* to = reinterpret_cast<float4*>(link.open());
    for (int i = threadIdx.x; i < kPiece && begin + i < count; i += kThreads) to[i] = x[begin + i];
    link.close();
  }
  link.end();
}

__global__ void __launch_bounds__(kThreads)
    receive_rows_kernel(ReceiveRowsArgs args, CommView comm) {
  wait_for_previous();
  let_next_start();
  const int64_t count = int64_t{min(args.counts->num_rows, args.max_rows)} * args.cols / 4;
  auto* x = reinterpret_cast<float4*>(args.x);
  FromStageBefore link(comm);
  for (int64_t begin = int64_t{blockIdx.x} * kPiece; begin < count;
       begin += int64_t{gridDim.x} * kPiece) {
    const auto* from = reinterpret_cast<const float4*>(link.open());
    for (int i = threadIdx.x; i < kPiece && begin + i < count; i += kThreads) {
      x[begin + i] = load_fresh(from + i);
    }
    link.close();
  }
  link.end();
}

int blocks_for_step(int64_t max_rows) {
  return static_cast<int>((max_rows + kRowsEach - 1) / kRowsEach);
}

int blocks_for_rows(int64_t max_rows, int cols) {
  const int64_t pieces = (max_rows * cols / 4 + kPiece - 1) / kPiece;
  return static_cast<int>(pieces < kCommBlocks ? pieces : kCommBlocks);
}

}  // namespace

void launch_send_step(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<SendStepArgs>(packed);
  if (NcclExchange* nccl = nccl_of(args.comm)) return nccl_send_step(args, *nccl, stream);
  launch_kernel(send_step_kernel, blocks_for_step(args.max_rows), kThreads, 0, stream, args,
                peers_of(args.comm));
}

void launch_receive_step(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<ReceiveStepArgs>(packed);
  if (NcclExchange* nccl = nccl_of(args.comm)) return nccl_receive_step(args, *nccl, stream);
  launch_kernel(receive_step_kernel, blocks_for_step(args.max_rows), kThreads, 0, stream, args,
                peers_of(args.comm));
}

void launch_send_rows(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<SendRowsArgs>(packed);
  if (NcclExchange* nccl = nccl_of(args.comm)) return nccl_send_rows(args, *nccl, stream);
  launch_kernel(send_rows_kernel, blocks_for_rows(args.max_rows, args.cols), kThreads, 0, stream,
                args, peers_of(args.comm));
}

void launch_receive_rows(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<ReceiveRowsArgs>(packed);
  if (NcclExchange* nccl = nccl_of(args.comm)) return nccl_receive_rows(args, *nccl, stream);
  launch_kernel(receive_rows_kernel, blocks_for_rows(args.max_rows, args.cols), kThreads, 0, stream,
                args, peers_of(args.comm));
}

}  // namespace foretoken::cuda
