#include "device/device_traits.h"

#include <algorithm>

#include "base/check.h"

namespace foretoken {
namespace {

constexpr DeviceTraits kDeviceTypes[] = {{.type = DeviceType::kCpu,
                                          .name = "cpu",
                                          .title = "the CPU",
                                          .uses_host_memory = true,
                                          .uses_host_cores = true,
                                          .exchanges_by_mpi = true,
                                          .cuts_attention = false,
                                          .measures_at_start = false,
                                          .steps_between_lessons = 1,
                                          .lends_rows = true,
                                          .bytes_per_second = 10'000'000'000,
                                          .usual = {.num_seqs = 64,
                                                    .state_bytes = int64_t{4} << 30,
                                                    .step_tokens = 512,
                                                    .step_tokens_of_large_memory = 512}},
                                         {.type = DeviceType::kCuda,
                                          .name = "cuda",
                                          .title = "CUDA",
                                          .uses_host_memory = false,
                                          .uses_host_cores = false,
                                          .exchanges_by_mpi = false,
                                          .cuts_attention = true,
                                          .measures_at_start = true,
                                          .steps_between_lessons = 4,
                                          .lends_rows = false,
                                          .bytes_per_second = 1'000'000'000'000,
                                          .usual = {.num_seqs = 256,
                                                    .state_bytes = int64_t{16} << 30,
                                                    .step_tokens = 2048,
                                                    .step_tokens_of_large_memory = 8192}}};

}  // namespace

std::span<const DeviceTraits> device_types() { return kDeviceTypes; }

const DeviceTraits& device_traits(DeviceType type) {
  const auto found = std::find_if(std::begin(kDeviceTypes), std::end(kDeviceTypes),
                                  [&](const DeviceTraits& each) { return each.type == type; });
  FT_CHECK(found != std::end(kDeviceTypes));
  return *found;
}

std::string device_names() {
  std::string names;
  for (const DeviceTraits& each : kDeviceTypes)
    names += (names.empty() ? "" : " or ") + std::string(each.name);
  return names;
}

const DeviceTraits* find_device_type(std::string_view name) {
  const auto found = std::find_if(std::begin(kDeviceTypes), std::end(kDeviceTypes),
                                  [&](const DeviceTraits& each) { return each.name == name; });
  return found == std::end(kDeviceTypes) ? nullptr : &*found;
}

}  // namespace foretoken
