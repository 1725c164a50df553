#include "device/device_traits.h"

#include <gtest/gtest.h>

#include <string>

namespace foretoken {
namespace {

TEST(DeviceTraits, EveryTypeHasARow) {
  for (const DeviceType type : {DeviceType::kCpu, DeviceType::kCuda}) {
    EXPECT_EQ(device_traits(type).type, type);
    EXPECT_EQ(find_device_type(device_traits(type).name), &device_traits(type));
  }
  EXPECT_EQ(find_device_type("tpu"), nullptr);
  EXPECT_EQ(find_device_type(""), nullptr);
  EXPECT_EQ(device_types().size(), 2u);
  EXPECT_EQ(device_names(), "cpu or cuda");
}

// The host's memory and cores are divided among ranks and engines; a GPU is one rank's.
TEST(DeviceTraits, TheCpuIsTheHosts) {
  const DeviceTraits& cpu = device_traits(DeviceType::kCpu);
  const DeviceTraits& cuda = device_traits(DeviceType::kCuda);
  EXPECT_TRUE(cpu.uses_host_memory && cpu.uses_host_cores);
  EXPECT_FALSE(cuda.uses_host_memory || cuda.uses_host_cores);
}

TEST(DeviceTraits, EveryTypeSaysHowMuchAnEngineTakes) {
  for (const DeviceTraits& device : device_types()) {
    EXPECT_GT(device.bytes_per_second, 0) << device.name;
    EXPECT_GT(device.usual.num_seqs, 0) << device.name;
    EXPECT_GT(device.usual.state_bytes, 0) << device.name;
    EXPECT_GT(device.usual.step_tokens, 0) << device.name;
    EXPECT_GE(device.usual.step_tokens_of_large_memory, device.usual.step_tokens) << device.name;
  }
}

// A GPU's weights lie as tensor cores read them.
TEST(DeviceTraits, TheCpuLooksRowsOfWeightsUp) {
  EXPECT_TRUE(device_traits(DeviceType::kCpu).lends_rows);
  EXPECT_FALSE(device_traits(DeviceType::kCuda).lends_rows);
}

// A server under a load that never pauses would otherwise not draft for as long as it lasts.
TEST(DeviceTraits, AGpuMeasuresBeforeItsFirstRequest) {
  EXPECT_TRUE(device_traits(DeviceType::kCuda).measures_at_start);
  EXPECT_FALSE(device_traits(DeviceType::kCpu).measures_at_start);
}

}  // namespace
}  // namespace foretoken
