#pragma once
#include "kernels/gemm/cuda/dequant_weight.cuh"
#include "kernels/gemm/cuda/gemm_epilogue.cuh"

// Products with quantised weights. Each is a sum of parts, in order of k: chains of steps of 16 k
// that begin at zero, over part_units units, sum += part, or over a group of scales, sum =
// fma(scale, part, sum). Scales of rows multiply the sum at the end. So bits depend on the row of x
// alone.
namespace foretoken::cuda {

// GemmArgs::weight is of `matrix`. The args of a gated product count the rows of the packed matrix
// in n.
template <class Form, class Epilogue>
void launch_dequant(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                    cudaStream_t stream);

// GemmArgs as of launch_gemm, or of the product of head_argmax, whose weight is of one form and
// whose keys have at most ceil(n / 16) columns, and ceil(n / 32) above 64 rows.
void launch_gemm_dequant(const GemmArgs& args, const QuantizedMatrix& matrix, cudaStream_t stream);
void launch_gemm_dequant(const GemmArgs& args, const QuantizedMatrix& matrix, KeepBest& best,
                         cudaStream_t stream);

}  // namespace foretoken::cuda
