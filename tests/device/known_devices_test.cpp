#include "device/known_devices.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(KnownDevices, LimitsAreOfOneFormOfAProduct) {
  EXPECT_DOUBLE_EQ(known_limits("NVIDIA H200").bytes_per_second, 4.2e12);
  EXPECT_DOUBLE_EQ(known_limits("NVIDIA H100 80GB HBM3").bytes_per_second, 3.0e12);
  for (const char* other : {"NVIDIA H100 PCIe", "NVIDIA B200", "cpu (2 threads, avx2)", ""}) {
    EXPECT_FALSE(known_limits(other).are_known()) << other;
  }
}

TEST(KnownDevices, TheLargerTimeCounts) {
  const DeviceLimits limits{100, 1000};
  EXPECT_DOUBLE_EQ(limits.seconds(200, 1000), 2);
  EXPECT_DOUBLE_EQ(limits.seconds(100, 5000), 5);
}

TEST(KnownDevices, KernelsOfOneProductRunOnNothingElse) {
  EXPECT_TRUE(runs_kernels_of("B200", "NVIDIA B200"));
  EXPECT_FALSE(runs_kernels_of("B200", "NVIDIA H200"));
  for (const char* shared : {"H200", "H100", "A100", ""}) {
    EXPECT_TRUE(runs_kernels_of(shared, "NVIDIA B200")) << shared;
  }
}

}  // namespace
}  // namespace foretoken
