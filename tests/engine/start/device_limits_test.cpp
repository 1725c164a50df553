#include "engine/start/device_limits.h"

#include "support/test_device.h"

namespace foretoken {
namespace {

class DeviceLimitsTest : public DeviceTest {};

TEST_F(DeviceLimitsTest, AreWhatAMachineCanHave) {
  const Result<DeviceLimits> limits = find_device_limits(device(), queue());
  ASSERT_TRUE(limits.ok()) << limits.status().message();
  EXPECT_GT(limits.value().bytes_per_second, 1e7);
  EXPECT_LT(limits.value().bytes_per_second, 1e14);
  EXPECT_GT(limits.value().flops_per_second, 1e7);
  EXPECT_LT(limits.value().flops_per_second, 1e17);
}

}  // namespace
}  // namespace foretoken
