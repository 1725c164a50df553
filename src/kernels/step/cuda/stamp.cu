#include "kernels/step/stamp.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

__global__ void stamp_kernel(StampArgs args) {
  wait_for_previous();
  args.stamps[(*args.step - 1) % kStepRingSize].end_ns = global_nanoseconds();
}

}  // namespace

void launch_stamp(const void* args, cudaStream_t stream) {
  launch_kernel(stamp_kernel, 1, 1, 0, stream, op_args<StampArgs>(args));
}

}  // namespace foretoken::cuda
