#include "device/known_devices.h"

#include <algorithm>

namespace foretoken {
namespace {

struct KnownDevice {
  std::string_view product;  // a word of Device::name
  std::string_view name;     // all of it, as limits are of one form of a product
  DeviceLimits limits;
  bool has_own_kernels;  // some are compiled and run on nothing else
};

constexpr KnownDevice kKnownDevices[] = {{"H200", "NVIDIA H200", {4.2e12, 747e12}, false},
                                         {"H100", "NVIDIA H100 80GB HBM3", {3.0e12, 747e12}, false},
                                         {"B200", "", {}, true}};

}  // namespace

double DeviceLimits::seconds(double bytes, double flops) const {
  return std::max(bytes / bytes_per_second, flops / flops_per_second);
}

DeviceLimits known_limits(std::string_view device_name) {
  for (const KnownDevice& known : kKnownDevices) {
    if (device_name == known.name) return known.limits;
  }
  return {};
}

bool runs_kernels_of(std::string_view product, std::string_view device_name) {
  return std::ranges::none_of(kKnownDevices, [&](const KnownDevice& known) {
    return known.has_own_kernels && product == known.product &&
           device_name.find(known.product) == std::string_view::npos;
  });
}

}  // namespace foretoken
