#include "kernels/cuda/common.cuh"

namespace foretoken::cuda {

const DeviceTraits& device_traits() {
  static const DeviceTraits traits = [] {
    DeviceTraits found{};
    int ordinal = 0;
    int major = 0;
    cudaGetDevice(&ordinal);
    cudaDeviceGetAttribute(&found.num_sms, cudaDevAttrMultiProcessorCount, ordinal);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal);
    found.dependent_launch = major >= 9;
    found.clusters = major >= 9;
#ifndef FORETOKEN_PLAIN_SM90
    found.wgmma = major == 9;
#endif
    return found;
  }();
  return traits;
}

}  // namespace foretoken::cuda
