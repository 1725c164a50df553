#include <algorithm>
#include <vector>

#include "kernels/cuda/common.cuh"

namespace foretoken::cuda {

namespace {

DeviceTraits traits_of(int ordinal) {
  DeviceTraits found{};
  int major = 0;
  int shared_by_processes = 0;
  cudaDeviceGetAttribute(&found.num_sms, cudaDevAttrMultiProcessorCount, ordinal);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal);
  cudaDeviceGetAttribute(&shared_by_processes, cudaDevAttrMpsEnabled, ordinal);
  found.dependent_launch = major >= 9;
  found.clusters = major >= 9;
#ifndef FORETOKEN_PLAIN_SM90
  found.wgmma = major == 9;
#endif
  found.mps = shared_by_processes != 0;
  return found;
}

std::vector<DeviceTraits> traits_of_all() {
  int count = 0;
  cudaGetDeviceCount(&count);
  std::vector<DeviceTraits> all(static_cast<size_t>(std::max(count, 1)));
  for (int i = 0; i < count; ++i) all[static_cast<size_t>(i)] = traits_of(i);
  return all;
}

}  // namespace

const DeviceTraits& device_traits() {
  static const std::vector<DeviceTraits> all = traits_of_all();
  int ordinal = 0;
  cudaGetDevice(&ordinal);
  return all[std::min(static_cast<size_t>(ordinal), all.size() - 1)];
}

}  // namespace foretoken::cuda
