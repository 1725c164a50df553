#include "kernels/experts/cuda/expert_fp8.cuh"

namespace foretoken::cuda {

template bool launch_experts_fp8_of<false>(const ExpertGemmArgs& args, const ExpertScales& scales,
                                           cudaStream_t stream);

}  // namespace foretoken::cuda
