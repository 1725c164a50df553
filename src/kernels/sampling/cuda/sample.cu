#include "kernels/sampling/sample.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/logits_row.h"
#include "kernels/sampling/cuda/sample_row.cuh"

namespace foretoken::cuda {
namespace {

// A team of Size blocks: one logits row.
template <int Size>
__global__ void __launch_bounds__(kTeamThreads) sample_kernel(SampleArgs args) {
  __shared__ TeamShared shared;
  __shared__ int32_t stop_ids[kMaxStopIds];
  wait_for_previous();
  let_next_start();
  const int i = blockIdx.x / Size;
  const int live = live_rows(args.tensors.counts, RowKind::kLogits, args.row_offset, args.max_rows);
  const LogitsRow at = logits_row(args.tensors, args.batch.slots, args.row_offset + i);
  if (i >= live) return;
  int32_t& sampled = args.tensors.sampled[args.row_offset + i];
  const int position = at.position + 1;
  const bool writes = threadIdx.x == 0 && Team<Size>::rank() == 0;
  if (at.scored) {
    if (writes) sampled = history_id(args.batch, at.slot, position);
    return;
  }
  const SlotParams& params = args.batch.params[at.slot];
  if (threadIdx.x < kMaxStopIds) stop_ids[threadIdx.x] = params.stop_ids[threadIdx.x];
  __syncthreads();
  const MaskedRow row{args.logits + int64_t{i} * args.vocab, stop_ids,
                      position < params.min_len ? params.num_stop_ids : 0, args.vocab};
  const int32_t id = sample_row<Size>(row, params, position, Team<Size>(shared));
  if (writes) sampled = id;
}

}  // namespace

void launch_sample(const void* args, cudaStream_t stream) {
  launch_teams<SampleArgs>({sample_kernel<8>, sample_kernel<4>, sample_kernel<2>, sample_kernel<1>},
                           op_args<SampleArgs>(args), stream);
}

}  // namespace foretoken::cuda
