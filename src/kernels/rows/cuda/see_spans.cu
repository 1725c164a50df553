#include "kernels/rows/see_spans.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) see_spans_kernel(SeeSpansArgs args) {
  wait_for_previous();
  let_next_start();
  const int num_rows = args.counts->num_rows;
  const int row = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (row >= args.max_rows) return;
  const bool is_live = row < num_rows;
  args.last_seen[row] = is_live ? args.positions[last_of_slot(args.row_slot, row, num_rows)] : 0;
}

}  // namespace

void launch_see_spans(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<SeeSpansArgs>(packed);
  const int blocks = (args.max_rows + kThreads - 1) / kThreads;
  launch_kernel(see_spans_kernel, blocks, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
