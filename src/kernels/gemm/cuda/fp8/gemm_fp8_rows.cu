#include "kernels/gemm/cuda/fp8/gemm_fp8_shapes.cuh"

namespace foretoken::cuda {

FT_FP8_SCALES(false)

}  // namespace foretoken::cuda
