#include "kernels/gemm/head_argmax.h"

#include "kernels/cuda/launchers.h"
#include "kernels/gemm/cuda/gemm_common.cuh"
#include "kernels/gemm/cuda/gemm_dequant.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 512;

// One block: the best of one row's keys.
__global__ void __launch_bounds__(kThreads) best_ids_kernel(HeadArgmaxArgs args, KeepBest best) {
  __shared__ uint64_t warp_keys[kThreads / 32];
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= live_rows(args.counts, RowKind::kLogits, 0, args.max_rows)) return;
  const uint64_t* keys = best.keys + int64_t{row} * best.num_columns;
  uint64_t key = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < best.num_columns; i += kThreads) key = max(key, keys[i]);
  for (int offset = 16; offset > 0; offset /= 2) {
    key = max(key, __shfl_xor_sync(0xffffffffu, key, offset));
  }
  if (threadIdx.x % 32 == 0) warp_keys[threadIdx.x / 32] = key;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (const uint64_t other : warp_keys) key = max(key, other);
  if (args.keys != nullptr) {
    args.keys[row] = key == 0 ? 0 : key - static_cast<uint32_t>(args.first_row);
    return;
  }
  const int32_t n = row_of_argmax_key(key);
  args.ids[row] = key == 0 ? -1 : args.id_map == nullptr ? n : args.id_map[n];
}

}  // namespace

void launch_head_argmax(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<HeadArgmaxArgs>(packed);
  const GemmArgs product{args.counts, args.x,           args.weight, nullptr,
                         nullptr,     RowKind::kLogits, 0,           args.max_rows,
                         args.n,      args.k,           args.dtype,  DType::kF32};
  KeepBest best{args.id_map, static_cast<uint64_t*>(args.workspace), 0};
  if (const QuantizedMatrix* matrix = quantized_matrix(args.weight)) {
    launch_gemm_dequant(product, *matrix, best, stream);
  } else if (args.dtype == DType::kF32) {
    launch_gemm_float(product, best, stream);
  } else if (uses_skinny(product)) {
    launch_gemm_skinny(product, best, stream);
  } else if (args.max_rows <= kFewRows ? !launch_gemm_stream(product, best, stream)
                                       : !launch_gemm_wide(product, best, stream)) {
    launch_gemm_tiled(product, best, stream);
  }
  launch_kernel(best_ids_kernel, args.max_rows, kThreads, 0, stream, args, best);
}

}  // namespace foretoken::cuda
