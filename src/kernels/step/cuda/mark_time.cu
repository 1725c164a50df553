#include "kernels/step/mark_time.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

__global__ void mark_time_kernel(MarkTimeArgs args) {
  wait_for_previous();
  int64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  *args.ns = now;
}

}  // namespace

void launch_mark_time(const void* args, cudaStream_t stream) {
  launch_kernel(mark_time_kernel, 1, 1, 0, stream, op_args<MarkTimeArgs>(args));
}

}  // namespace foretoken::cuda
