#include "kernels/rows/move_rows.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/copy_piece.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 8;
constexpr int kPiece = kThreads * kPerThread;

// One block: a piece of one row.
template <class In, class Out>
__global__ void __launch_bounds__(kThreads) move_rows_kernel(MoveRowsArgs args) {
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= live_rows(args.counts, args.row_kind, 0, args.max_rows)) return;
  const int64_t from = args.from == nullptr ? row : args.from[row];
  const int64_t to = args.to == nullptr ? row : args.to[row];
  const int64_t in_stride = args.in_stride > 0 ? args.in_stride : args.width;
  const In* in = static_cast<const In*>(args.in) + from * in_stride;
  Out* out = static_cast<Out*>(args.out) + to * args.out_stride + args.out_offset;
  copy_piece<kThreads, kPerThread>(in, out, blockIdx.y * kPiece, args.width);
}

template <class In>
void launch(const MoveRowsArgs& args, cudaStream_t stream) {
  const auto kernel = args.out_dtype == DType::kBF16 ? move_rows_kernel<In, __nv_bfloat16>
                                                     : move_rows_kernel<In, float>;
  launch_kernel(kernel, dim3(args.max_rows, ceil_div(args.width, kPiece)), kThreads, 0, stream,
                args);
}

}  // namespace

void launch_move_rows(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<MoveRowsArgs>(packed);
  args.in_dtype == DType::kBF16 ? launch<__nv_bfloat16>(args, stream) : launch<float>(args, stream);
}

}  // namespace foretoken::cuda
