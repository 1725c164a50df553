#include "kernels/draft/spread_logits.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 1024;

// One block: one row.
__global__ void __launch_bounds__(kThreads) spread_logits_kernel(SpreadLogitsArgs args) {
  wait_for_previous();
  let_next_start();
  const int i = blockIdx.x;
  if (i >= live_rows(args.counts, RowKind::kLogits, args.row_offset, args.max_rows)) return;
  const float* in = args.in + int64_t{i} * args.n;
  float* out = args.out + int64_t{i} * args.vocab;
  for (int id = threadIdx.x; id < args.vocab; id += kThreads) out[id] = -INFINITY;
  __syncthreads();
  for (int n = threadIdx.x; n < args.n; n += kThreads) {
    const int id = args.id_map[n];
    if (id >= 0 && id < args.vocab) out[id] = in[n];
  }
}

}  // namespace

void launch_spread_logits(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<SpreadLogitsArgs>(packed);
  launch_kernel(spread_logits_kernel, args.max_rows, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
