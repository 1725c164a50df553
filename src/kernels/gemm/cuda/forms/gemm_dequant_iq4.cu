#include "kernels/gemm/cuda/forms/gemm_dequant_shapes.cuh"

namespace foretoken::cuda {

FT_DEQUANT_FORM(Iq4Form)

}  // namespace foretoken::cuda
