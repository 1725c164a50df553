#include "kernels/sampling/keep_raw.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/copy_piece.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 16;
constexpr int kPiece = kThreads * kPerThread;

// One block: a piece of one logits row.
__global__ void __launch_bounds__(kThreads) keep_raw_kernel(KeepRawArgs args) {
  wait_for_previous();
  let_next_start();
  const int i = blockIdx.y;
  if (i >= live_rows(args.tensors.counts, RowKind::kLogits, args.row_offset, args.max_rows)) return;
  const int slot = args.tensors.row_slot[args.tensors.logits_rows[args.row_offset + i]];
  if (!keeps_raw(args.batch.params[slot])) return;
  const int64_t row = int64_t{i} * args.vocab;
  copy_piece<kThreads, kPerThread>(args.logits + row, args.raw + row, blockIdx.x * kPiece,
                                   args.vocab);
}

}  // namespace

void launch_keep_raw(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<KeepRawArgs>(packed);
  launch_kernel(keep_raw_kernel, dim3(ceil_div(args.vocab, kPiece), args.max_rows), kThreads, 0,
                stream, args);
}

}  // namespace foretoken::cuda
