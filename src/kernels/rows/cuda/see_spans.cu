#include "kernels/rows/see_spans.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kMaxBlocks = 256;

// A block has a span at a time; the first one clears the rows behind all of them, too.
__global__ void __launch_bounds__(kThreads) see_spans_kernel(SeeSpansArgs args) {
  wait_for_previous();
  let_next_start();
  if (blockIdx.x == 0) {
    for (int row = args.counts->num_rows + threadIdx.x; row < args.max_rows; row += kThreads) {
      args.last_seen[row] = 0;
    }
  }
  for (int i = blockIdx.x; i < args.counts->num_spans; i += gridDim.x) {
    const SpanState span = args.spans[i];
    if (span.num_rows == 0) continue;
    const int last = args.positions[span.row_begin + span.num_rows - 1];
    for (int row = threadIdx.x; row < span.num_rows; row += kThreads) {
      args.last_seen[span.row_begin + row] = last;
    }
  }
}

}  // namespace

void launch_see_spans(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<SeeSpansArgs>(packed);
  const int blocks = args.max_rows < kMaxBlocks ? args.max_rows : kMaxBlocks;
  launch_kernel(see_spans_kernel, blocks, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
