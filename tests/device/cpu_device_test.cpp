#include "device/cpu/cpu_device.h"

#include <gtest/gtest.h>

namespace foretoken::cpu {
namespace {

int packed = 0;

void* pack(std::span<const WeightPart> parts, int64_t k, DType, WeightOrder) {
  packed += static_cast<int>(parts.size() * static_cast<size_t>(k));
  return &packed;
}
void unpack(void* weight) { *static_cast<int*>(weight) = 0; }

TEST(CpuDevice, HandsWeightsToTheKernels) {
  CpuKernels kernels;
  kernels.pack_weight = pack;
  kernels.free_weight = unpack;
  const auto device = open_cpu_device(kernels, 2).value();
  const WeightPart parts[2] = {{nullptr, 1}, {nullptr, 1}};
  void* weight = device->pack_weight(parts, 5, DType::kF32);
  EXPECT_EQ(packed, 10);
  device->free_weight(weight);
  EXPECT_EQ(packed, 0);
}

TEST(CpuDevice, NamesThreadsAndInstructions) {
  const auto device = open_cpu_device({}, 2).value();
  EXPECT_EQ(device->name().rfind("cpu (2 threads, ", 0), 0u) << device->name();
}

TEST(CpuDevice, GivesNoMemoryBeyondTheAddressSpace) {
  const auto device = open_cpu_device({}, 1).value();
  EXPECT_EQ(device->allocate(size_t{1} << 52, MemoryKind::kDevice), nullptr);
  device->deallocate(nullptr, MemoryKind::kDevice);
}

}  // namespace
}  // namespace foretoken::cpu
