#include "kernels/experts/cuda/expert_codes_shapes.cuh"

namespace foretoken::cuda {

template bool launch_experts_of<Int3Form>(const ExpertGemmArgs& args, const float* row_scales,
                                          cudaStream_t stream);

}  // namespace foretoken::cuda
