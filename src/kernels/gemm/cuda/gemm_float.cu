#include "kernels/gemm/cuda/gemm_common.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * 32;
constexpr int kBlockK = 64;

// A lane computes one n for Rows rows of x, one fused multiply-add after the other along k.
template <int Rows, class Epilogue>
__global__ void __launch_bounds__(kThreads) gemm_float_kernel(GemmArgs args, Epilogue epilogue) {
  __shared__ float x_block[kBlockK][Rows];
  wait_for_previous(args.frees_next != 0);
  const int live = live_rows(args.counts, args.row_kind, args.row_offset, args.max_rows);
  const int first_row = blockIdx.y * Rows;
  if (first_row >= live) return;
  const int n_tile = blockIdx.x * kWarps + threadIdx.x / 32;
  const bool has_tile = n_tile * kFloatTileN < args.n;
  const float* weight = static_cast<const float*>(args.weight) +
                        int64_t{has_tile ? n_tile : 0} * args.k * kFloatTileN + threadIdx.x % 32;
  const auto* x = static_cast<const float*>(args.x);
  float sums[Rows] = {};
  for (int k0 = 0; k0 < args.k; k0 += kBlockK) {
    __syncthreads();
    for (int i = threadIdx.x; i < kBlockK * Rows; i += kThreads) {
      const int row = min(first_row + i / kBlockK, args.max_rows - 1);
      const int k = k0 + i % kBlockK;
      x_block[i % kBlockK][i / kBlockK] = k < args.k ? x[int64_t{row} * args.k + k] : 0.0f;
    }
    __syncthreads();
    const int count = min(kBlockK, args.k - k0);
#pragma unroll 8
    for (int k = 0; k < count; ++k) {
      const float w = weight[int64_t{k0 + k} * kFloatTileN];
#pragma unroll
      for (int r = 0; r < Rows; ++r) sums[r] = fmaf(x_block[k][r], w, sums[r]);
    }
  }
  const int n = n_tile * kFloatTileN + threadIdx.x % 32;
  epilogue.take_column(args, live, first_row, n, n_tile, sums);
}

template <int Rows, class Epilogue>
void launch(const GemmArgs& args, const Epilogue& epilogue, cudaStream_t stream) {
  const dim3 grid(ceil_div(args.n, kFloatTileN * kWarps), ceil_div(args.max_rows, Rows));
  launch_kernel(gemm_float_kernel<Rows, Epilogue>, grid, kThreads, 0, stream, args, epilogue);
}

template <class Epilogue>
void launch_for_rows(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream) {
  set_width(epilogue, args, kFloatTileN);
  args.max_rows <= 32 ? launch<4>(args, epilogue, stream) : launch<16>(args, epilogue, stream);
}

}  // namespace

void launch_gemm_float(const GemmArgs& args, cudaStream_t stream) {
  with_store(args,
             [&](const GemmArgs& all, auto& epilogue) { launch_for_rows(all, epilogue, stream); });
}

void launch_gemm_float(const GemmArgs& args, KeepBest& best, cudaStream_t stream) {
  launch_for_rows(args, best, stream);
}

}  // namespace foretoken::cuda
