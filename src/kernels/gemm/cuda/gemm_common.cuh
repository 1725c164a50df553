#pragma once
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/gemm/cuda/gemm_epilogue.cuh"
#include "kernels/gemm/gemm.h"

namespace foretoken::cuda {

// Variants of the product; each has the same bits for the same row. Launched with KeepBest they set
// its num_columns, at most ceil(n / 16), and ceil(n / 32) above kFewRows rows.
void launch_gemm_skinny(const GemmArgs& args, cudaStream_t stream);  // uses_skinny(args)
void launch_gemm_skinny(const GemmArgs& args, KeepBest& best, cudaStream_t stream);
void launch_gemm_tiled(const GemmArgs& args, cudaStream_t stream);
void launch_gemm_tiled(const GemmArgs& args, KeepBest& best, cudaStream_t stream);
void launch_gemm_float(const GemmArgs& args, cudaStream_t stream);
void launch_gemm_float(const GemmArgs& args, KeepBest& best, cudaStream_t stream);

// Up to kFewRows rows; false when the device or the operands do not allow it.
bool launch_gemm_stream(const GemmArgs& args, cudaStream_t stream);
bool launch_gemm_stream(const GemmArgs& args, KeepBest& best, cudaStream_t stream);

// More than kFewRows rows; false when the device or the operands do not allow it.
bool launch_gemm_wide(const GemmArgs& args, cudaStream_t stream);
bool launch_gemm_wide(const GemmArgs& args, KeepBest& best, cudaStream_t stream);

// Before a kernel reads x or what its blocks have in common with other ops.
__device__ inline void wait_for_rows(const GemmArgs& args) {
  if (args.x_is_old == 0) wait_for_previous(args.frees_next != 0);
}
// Behind its stores: nothing ends before what was there before it.
__device__ inline void wait_behind_stores(const GemmArgs& args) {
  if (args.x_is_old != 0) wait_for_all_before();
}

inline constexpr int kSkinnyRows = 8;
inline constexpr int kFewRows = 64;

// A small weight with long rows (latent attention, routers): its time is that of one chain of
// products along k, which wgmma makes sooner.
inline bool is_short_chain(const GemmArgs& args) {
  return args.gated == 0 && args.k >= 1536 && args.n >= 64 && args.n <= 4096 &&
         int64_t{args.n} * args.k < int64_t{12} << 20;
}

// Whether up to kSkinnyRows rows are streamed: there, and where the weight is so large that filling
// a deep ring pays. In a chain of such products one row is faster with many small blocks unless k
// is long.
inline bool streams_few(const GemmArgs& args) {
  if (is_short_chain(args)) return true;
  return (args.max_rows > 1 || args.k > 8192) && args.n < 1 << 16 &&
         int64_t{args.n} * args.k >= int64_t{12} << 20;
}
inline bool uses_skinny(const GemmArgs& args) {
  return args.max_rows <= kSkinnyRows && args.k % 8 == 0;
}

// The two lanes' views of ldmatrix: lane i gives the address of row i % 8 of matrix i / 8.
// A: 16 weight rows x 16 k from two groups of atoms, `group_chunks` apart; step counts 16 k in the
// atom.
__device__ inline void load_weight_step(uint32_t (&a)[4], const uint4* atom, int group_chunks,
                                        int step) {
  const int matrix = threadIdx.x % 32 / 8;
  const uint4* from =
      atom + matrix % 2 * group_chunks + atom_chunk(threadIdx.x % 8, step * 2 + matrix / 2);
  load_matrices(a, shared_address(from));
}

__device__ inline void multiply_step(float (&c)[4], const uint32_t (&a)[4], uint32_t x_low,
                                     uint32_t x_high) {
  mma_bf16(c, a[0], a[1], a[2], a[3], x_low, x_high);
}

}  // namespace foretoken::cuda
