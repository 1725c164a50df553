#include "kernels/devices/open_device.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(OpenDevice, CpuNamesItsThreads) {
  auto device = open_device(DeviceType::kCpu, 0, 3);
  ASSERT_TRUE(device.ok());
  EXPECT_EQ(device.value()->type(), DeviceType::kCpu);
  EXPECT_EQ(device.value()->num_workers(), 3);
  EXPECT_NE(device.value()->name().find("3 threads"), std::string::npos);
  EXPECT_GT(device.value()->free_memory(), 0);
}

TEST(OpenDevice, ZeroThreadsMeansPhysicalCores) {
  auto device = open_device(DeviceType::kCpu, 0, 0);
  ASSERT_TRUE(device.ok());
  EXPECT_GE(device.value()->num_workers(), 1);
}

TEST(OpenDevice, BadThreadCountIsASentence) {
  auto device = open_device(DeviceType::kCpu, 0, -1);
  ASSERT_FALSE(device.ok());
  EXPECT_NE(device.status().message().find("--cpu-threads"), std::string::npos);
}

TEST(OpenDevice, CudaWithoutADeviceSaysWhatToDo) {
  auto device = open_device(DeviceType::kCuda, 1000, 0);
  ASSERT_FALSE(device.ok());
  EXPECT_NE(device.status().message().find("--device cpu"), std::string::npos)
      << device.status().message();
}

}  // namespace
}  // namespace foretoken
