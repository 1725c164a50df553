#include "draft/parts/device_ids.h"

#include <gtest/gtest.h>

#include "support/test_device.h"

namespace foretoken {
namespace {

class DeviceIds : public DeviceTest {};

TEST_F(DeviceIds, AreCopied) {
  Arena arena(device(), MemoryKind::kDevice);
  const std::vector<int32_t> ids = {5, -1, 70000, 0};
  const int32_t* memory = upload_ids(device(), arena, ids, "ids").value();
  EXPECT_EQ(read(memory, ids.size()), ids);
  EXPECT_EQ(arena.bytes_taken(), 16u);
}

TEST_F(DeviceIds, NoneAreNull) {
  Arena arena(device(), MemoryKind::kDevice);
  EXPECT_EQ(upload_ids(device(), arena, {}, "ids").value(), nullptr);
  EXPECT_EQ(arena.bytes_taken(), 0u);
}

}  // namespace
}  // namespace foretoken
