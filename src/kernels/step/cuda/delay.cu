#include "kernels/step/delay.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

__global__ void delay_kernel(DelayArgs args) {
  wait_for_previous();
  const int64_t start = global_nanoseconds();
  while (global_nanoseconds() - start < int64_t{args.microseconds} * 1000) __nanosleep(200);
}

}  // namespace

void launch_delay(const void* args, cudaStream_t stream) {
  launch_kernel(delay_kernel, 1, 1, 0, stream, op_args<DelayArgs>(args));
}

}  // namespace foretoken::cuda
