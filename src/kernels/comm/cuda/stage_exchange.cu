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

// The rows that a block has of a step, or of one of its lanes: the first half of the blocks have
// those of the first one.
struct BlockRows {
  StepCounts* counts;
  int first;  // in the lists
  int in_lane;

  __device__ BlockRows(const StepTensors& tensors, int32_t lane_offset) {
    const int blocks = static_cast<int>(gridDim.x) / (lane_offset > 0 ? 2 : 1);
    const int lane = static_cast<int>(blockIdx.x) / blocks;
    in_lane = static_cast<int>(blockIdx.x) % blocks * kRowsEach;
    first = lane * lane_offset + in_lane;
    counts = tensors.counts + (lane_offset > 0 ? 1 + lane : 0);
  }
};

// Every block tells the counts and its rows of each list.
__global__ void __launch_bounds__(kThreads) send_step_kernel(SendStepArgs args, CommView comm) {
  wait_for_previous();
  let_next_start();
  const StepTensors& tensors = args.tensors;
  const BlockRows own(tensors, args.lane_offset);
  const int rows = min(max(own.counts->num_rows - own.in_lane, 0), kRowsEach);
  ToNextStage link(comm);
  auto* message = reinterpret_cast<int32_t*>(link.open());
  if (threadIdx.x < kStepHeaderInts) {
    message[threadIdx.x] = reinterpret_cast<const int32_t*>(own.counts)[threadIdx.x];
  }
  for (int i = 0; i < kStepLists; ++i) {
    const int32_t* list = step_list(tensors, i);
    if (list == nullptr) continue;
    int32_t* to = message + kStepHeaderInts + i * kRowsEach;
    for (int row = threadIdx.x; row < rows; row += kThreads) to[row] = list[own.first + row];
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
  const BlockRows own(tensors, args.lane_offset);
  FromStageBefore link(comm);
  const auto* message = reinterpret_cast<const int32_t*>(link.open());
  const int live = load_int(message + offsetof(StepCounts, num_rows) / sizeof(int32_t));
  const int rows = min(max(args.max_rows - own.in_lane, 0), kRowsEach);
  if (own.in_lane == 0 && threadIdx.x < kStepHeaderInts) {
    reinterpret_cast<int32_t*>(own.counts)[threadIdx.x] = load_int(message + threadIdx.x);
  }
  for (int i = 0; i < kStepLists; ++i) {
    int32_t* list = step_list(tensors, i);
    if (list == nullptr) continue;
    const int32_t padding = list == tensors.row_slot ? args.num_slots : 0;
    const int32_t* from = message + kStepHeaderInts + i * kRowsEach;
    for (int row = threadIdx.x; row < rows; row += kThreads) {
      list[own.first + row] = own.in_lane + row < live ? load_int(from + row) : padding;
    }
  }
  link.close();
  link.end();
  if (args.stamps != nullptr && blockIdx.x == 0 && threadIdx.x == 0) {
    args.stamps[*args.step % kStepRingSize].begin_ns = global_nanoseconds();
  }
}

// The live rows of x in quads of floats, of which the last one may be short where rows are not made
// of whole ones; then x need not be aligned either.
struct RowQuads {
  int64_t count;   // of quads
  int64_t floats;  // in them
  bool whole;

  __device__ RowQuads(const StepCounts& counts, int max_rows, int cols)
      : floats(int64_t{min(counts.num_rows, max_rows)} * cols), whole(cols % 4 == 0) {
    count = (floats + 3) / 4;
  }
  __device__ float4 load(const float* x, int64_t quad) const {
    if (whole) return reinterpret_cast<const float4*>(x)[quad];
    const auto at = [&](int64_t i) { return i < floats ? x[i] : 0.0f; };
    return {at(4 * quad), at(4 * quad + 1), at(4 * quad + 2), at(4 * quad + 3)};
  }
  __device__ void store(float* x, int64_t quad, const float4& value) const {
    if (whole) {
      reinterpret_cast<float4*>(x)[quad] = value;
      return;
    }
    const auto put = [&](int64_t i, float one) {
      if (i < floats) x[i] = one;
    };
    put(4 * quad, value.x);
    put(4 * quad + 1, value.y);
    put(4 * quad + 2, value.z);
    put(4 * quad + 3, value.w);
  }
};

__global__ void __launch_bounds__(kThreads) send_rows_kernel(SendRowsArgs args, CommView comm) {
  wait_for_previous();
  let_next_start();
  const RowQuads quads(*args.counts, args.max_rows, args.cols);
  ToNextStage link(comm);
  for (int64_t begin = int64_t{blockIdx.x} * kPiece; begin < quads.count;
       begin += int64_t{gridDim.x} * kPiece) {
    auto* to = reinterpret_cast<float4*>(link.open());
    for (int i = threadIdx.x; i < kPiece && begin + i < quads.count; i += kThreads) {
      to[i] = quads.load(args.x, begin + i);
    }
    link.close();
  }
  link.end();
}

__global__ void __launch_bounds__(kThreads)
    receive_rows_kernel(ReceiveRowsArgs args, CommView comm) {
  wait_for_previous();
  let_next_start();
  const RowQuads quads(*args.counts, args.max_rows, args.cols);
  FromStageBefore link(comm);
  for (int64_t begin = int64_t{blockIdx.x} * kPiece; begin < quads.count;
       begin += int64_t{gridDim.x} * kPiece) {
    const auto* from = reinterpret_cast<const float4*>(link.open());
    for (int i = threadIdx.x; i < kPiece && begin + i < quads.count; i += kThreads) {
      quads.store(args.x, begin + i, load_fresh(from + i));
    }
    link.close();
  }
  link.end();
}

int blocks_for_step(int64_t max_rows, int32_t lane_offset) {
  return static_cast<int>((max_rows + kRowsEach - 1) / kRowsEach) * (lane_offset > 0 ? 2 : 1);
}
static_assert(2 * 65536 / kRowsEach <= kCommBlocks);

int blocks_for_rows(int64_t max_rows, int cols) {
  const int64_t pieces = ((max_rows * cols + 3) / 4 + kPiece - 1) / kPiece;
  return static_cast<int>(pieces < kCommBlocks ? pieces : kCommBlocks);
}

}  // namespace

void launch_send_step(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<SendStepArgs>(packed);
  if (NcclExchange* nccl = nccl_of(args.comm)) return nccl_send_step(args, *nccl, stream);
  launch_kernel(send_step_kernel, blocks_for_step(args.max_rows, args.lane_offset), kThreads, 0,
                stream, args, peers_of(args.comm));
}

void launch_receive_step(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<ReceiveStepArgs>(packed);
  if (NcclExchange* nccl = nccl_of(args.comm)) return nccl_receive_step(args, *nccl, stream);
  launch_kernel(receive_step_kernel, blocks_for_step(args.max_rows, args.lane_offset), kThreads, 0,
                stream, args, peers_of(args.comm));
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
