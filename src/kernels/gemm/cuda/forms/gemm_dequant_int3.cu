#include "kernels/gemm/cuda/forms/gemm_dequant_shapes.cuh"

namespace foretoken::cuda {

FT_DEQUANT_FORM(Int3Form)

}  // namespace foretoken::cuda
