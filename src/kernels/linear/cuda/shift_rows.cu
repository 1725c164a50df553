#include "kernels/linear/shift_rows.h"

#include <algorithm>

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/linear/cuda/state_rows.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;

__device__ float* history_of(const ShiftRowsArgs& args, int slot, int position) {
  const int64_t row = int64_t{slot} * args.history_rows + position % args.history_rows;
  return args.history + row * args.history_stride;
}

template <class T>
__global__ void __launch_bounds__(kThreads) shift_rows_kernel(ShiftRowsArgs args) {
  wait_for_previous();
  const StateRows rows = rows_of(args);
  const int row = blockIdx.x, i = blockIdx.y * kThreads + threadIdx.x;
  if (row >= rows.count || i >= args.size) return;
  const T* x = static_cast<const T*>(args.x) + int64_t{row} * args.size + i;
  const int position = args.positions[row];
  const float own = to_float(*x);
  float before = 0;
  if (rows.continues(row)) {
    before = to_float(*(x - args.size));
  } else if (position > 0) {
    before = history_of(args, args.row_slot[row], position - 1)[i];
  }
  const float step = __fsub_rn(before, own);
  for (int j = 0; j < args.num_mixes; ++j) {
    const float mixed = __fadd_rn(own, __fmul_rn(step, args.mixes[int64_t{j} * args.size + i]));
    static_cast<T*>(args.out)[(int64_t{j} * args.max_rows + row) * args.size + i] =
        from_float<T>(mixed);
  }
}

// What later runs read, once no block reads what this one has read.
template <class T>
__global__ void __launch_bounds__(kThreads) keep_shifted_kernel(ShiftRowsArgs args) {
  wait_for_previous();
  const StateRows rows = rows_of(args);
  const int row = blockIdx.x, i = blockIdx.y * kThreads + threadIdx.x;
  if (row >= rows.count || i >= args.size) return;
  if (rows.same_run(row, row + args.history_rows)) return;
  history_of(args, args.row_slot[row], args.positions[row])[i] =
      to_float(static_cast<const T*>(args.x)[int64_t{row} * args.size + i]);
}

template <class T>
void launch(const ShiftRowsArgs& args, cudaStream_t stream) {
  const dim3 grid(args.max_rows, ceil_div(args.size, kThreads));
  launch_kernel(shift_rows_kernel<T>, grid, kThreads, 0, stream, args);
  launch_kernel(keep_shifted_kernel<T>, grid, kThreads, 0, stream, args);
}

}  // namespace

void launch_shift_rows(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<ShiftRowsArgs>(packed);
  args.dtype == DType::kBF16 ? launch<__nv_bfloat16>(args, stream) : launch<float>(args, stream);
}

}  // namespace foretoken::cuda
