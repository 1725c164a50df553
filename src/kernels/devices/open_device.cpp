#include "kernels/devices/open_device.h"

#include "device/cpu/cpu_device.h"
#include "device/cuda_plugin.h"
#include "kernels/cpu/op_table.h"

namespace foretoken {
namespace {

#define FT_OP(Name, name, kind) #name,
constexpr const char* kOpNames[] = {
#include "kernels/ops.def"
};
#undef FT_OP

}  // namespace

Result<std::unique_ptr<Device>> open_device(DeviceType type, int ordinal, int cpu_threads) {
  switch (type) {
    case DeviceType::kCpu:
      return cpu::open_cpu_device(cpu::cpu_kernels(), cpu_threads);
    case DeviceType::kCuda:
      return open_cuda_device(ordinal, kOpNames);
  }
  return invalid_argument("unknown device type; use cpu or cuda");
}

}  // namespace foretoken
