#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

__global__ void all_ended_kernel() { wait_for_previous(true); }

}  // namespace

void launch_all_ended(cudaStream_t stream) { launch_kernel(all_ended_kernel, 1, 32, 0, stream); }

}  // namespace foretoken::cuda
