#include "kernels/gemm/cuda/forms/gemm_dequant_shapes.cuh"

namespace foretoken::cuda {

FT_DEQUANT_FORM(Int5MinForm)

}  // namespace foretoken::cuda
