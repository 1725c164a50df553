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
}

// A server under a load that never pauses would otherwise not draft for as long as it lasts.
TEST(DeviceTraits, AGpuMeasuresBeforeItsFirstRequest) {
  EXPECT_TRUE(device_traits(DeviceType::kCuda).measures_at_start);
  EXPECT_FALSE(device_traits(DeviceType::kCpu).measures_at_start);
}

}  // namespace
}  // namespace foretoken
