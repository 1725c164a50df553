#include "kernels/comm/cuda/nccl_ops.h"
#include "kernels/comm/cuda/rank_ops.cuh"
#include "kernels/cuda/common.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 512;

int64_t step_bytes(int64_t max_rows) {
  return (kStepHeaderInts + kStepLists * max_rows) * int64_t{sizeof(int32_t)};
}

int next_stage(const NcclExchange& nccl) { return (nccl.rank() + 1) % nccl.size(); }
int stage_before(const NcclExchange& nccl) { return (nccl.rank() + nccl.size() - 1) % nccl.size(); }

// A block a list.
__global__ void __launch_bounds__(kThreads) write_step_kernel(SendStepArgs args, int32_t* message) {
  wait_for_previous();
  const StepTensors& tensors = args.tensors;
  const int list_index = static_cast<int>(blockIdx.x);
  const int32_t* list = step_list(tensors, list_index);
  if (list_index == 0 && threadIdx.x < kStepHeaderInts) {
    message[threadIdx.x] = reinterpret_cast<const int32_t*>(tensors.counts)[threadIdx.x];
  }
  int32_t* to = message + kStepHeaderInts + int64_t{list_index} * args.max_rows;
  const int rows = min(tensors.counts->num_rows, args.max_rows);
  for (int row = threadIdx.x; list != nullptr && row < rows; row += kThreads) to[row] = list[row];
  if (args.counter != nullptr && list_index == 0 && threadIdx.x == 0) ++*args.counter;
}

__global__ void __launch_bounds__(kThreads)
    read_step_kernel(ReceiveStepArgs args, const int32_t* message) {
  wait_for_previous();
  const StepTensors& tensors = args.tensors;
  const int list_index = static_cast<int>(blockIdx.x);
  const int live = reinterpret_cast<const StepCounts*>(message)->num_rows;
  if (list_index == 0 && threadIdx.x < kStepHeaderInts) {
    reinterpret_cast<int32_t*>(tensors.counts)[threadIdx.x] = message[threadIdx.x];
  }
  int32_t* list = step_list(tensors, list_index);
  const int32_t padding = list == tensors.row_slot ? args.num_slots : 0;
  const int32_t* from = message + kStepHeaderInts + int64_t{list_index} * args.max_rows;
  for (int row = threadIdx.x; list != nullptr && row < args.max_rows; row += kThreads) {
    list[row] = row < live ? from[row] : padding;
  }
  if (args.stamps != nullptr && list_index == 0 && threadIdx.x == 0) {
    args.stamps[*args.step % kStepRingSize].begin_ns = global_nanoseconds();
  }
}

int64_t row_bytes(int64_t rows, int cols) { return rows * cols * int64_t{sizeof(float)}; }

}  // namespace

static_assert(kStepHeaderInts + kStepLists * int64_t{65536} <=
              kNcclPieceBytes / int64_t{sizeof(int32_t)});

void nccl_send_step(const SendStepArgs& args, NcclExchange& nccl, cudaStream_t stream) {
  launch_kernel(write_step_kernel, kStepLists, kThreads, 0, stream, args,
                reinterpret_cast<int32_t*>(nccl.outbox()));
  nccl.send(nccl.outbox(), step_bytes(args.max_rows), next_stage(nccl), stream);
}

void nccl_receive_step(const ReceiveStepArgs& args, NcclExchange& nccl, cudaStream_t stream) {
  nccl.receive(nccl.inbox(0), step_bytes(args.max_rows), stage_before(nccl), stream);
  launch_kernel(read_step_kernel, kStepLists, kThreads, 0, stream, args,
                reinterpret_cast<const int32_t*>(nccl.inbox(0)));
}

void nccl_send_rows(const SendRowsArgs& args, NcclExchange& nccl, cudaStream_t stream) {
  nccl.send(args.x, row_bytes(args.max_rows, args.cols), next_stage(nccl), stream);
}

void nccl_receive_rows(const ReceiveRowsArgs& args, NcclExchange& nccl, cudaStream_t stream) {
  nccl.receive(args.x, row_bytes(args.max_rows, args.cols), stage_before(nccl), stream);
}

}  // namespace foretoken::cuda
