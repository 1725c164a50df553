#include "device/device_traits.h"

#include <algorithm>

#include "base/check.h"

namespace foretoken {
namespace {

constexpr DeviceTraits kDeviceTypes[] = {{.type = DeviceType::kCpu,
                                          .name = "cpu",
                                          .title = "the CPU",
                                          .exchanges_by_mpi = true,
                                          .measures_at_start = false},
                                         {.type = DeviceType::kCuda,
                                          .name = "cuda",
                                          .title = "CUDA",
                                          .exchanges_by_mpi = false,
                                          .measures_at_start = true}};

}  // namespace

std::span<const DeviceTraits> device_types() { return kDeviceTypes; }

const DeviceTraits& device_traits(DeviceType type) {
  const auto found = std::find_if(std::begin(kDeviceTypes), std::end(kDeviceTypes),
                                  [&](const DeviceTraits& each) { return each.type == type; });
  FT_CHECK(found != std::end(kDeviceTypes));
  return *found;
}

const DeviceTraits* find_device_type(std::string_view name) {
  const auto found = std::find_if(std::begin(kDeviceTypes), std::end(kDeviceTypes),
                                  [&](const DeviceTraits& each) { return each.name == name; });
  return found == std::end(kDeviceTypes) ? nullptr : &*found;
}

}  // namespace foretoken
