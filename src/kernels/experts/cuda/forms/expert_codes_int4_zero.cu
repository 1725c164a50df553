#include "kernels/experts/cuda/expert_codes_shapes.cuh"

namespace foretoken::cuda {

template bool launch_experts_of<Int4Form<32, true>>(const ExpertGemmArgs& args,
                                                    const float* row_scales, cudaStream_t stream);

}  // namespace foretoken::cuda
