#include "device/arena.h"

#include "support/test_device.h"

namespace foretoken {
namespace {

class ArenaTest : public DeviceTest {};

TEST_F(ArenaTest, CountsBytesAndGivesZeroedMemory) {
  Arena arena(device(), MemoryKind::kDevice);
  const auto a = arena.take_array<int32_t>(100, "a");
  const auto b = arena.take(0, "nothing");
  ASSERT_TRUE(a.ok());
  ASSERT_TRUE(b.ok());
  EXPECT_NE(a.value(), b.value());
  EXPECT_EQ(arena.bytes_taken(), 400u);
  EXPECT_EQ(read(a.value(), 100), std::vector<int32_t>(100, 0));
}

TEST_F(ArenaTest, CountsWithoutADevice) {
  Arena arena(nullptr, MemoryKind::kDevice);
  EXPECT_EQ(arena.take_array<int32_t>(100, "a").value(), nullptr);
  EXPECT_EQ(arena.take(size_t{1} << 52, "b").value(), nullptr);
  EXPECT_EQ(arena.bytes_taken(), (size_t{1} << 52) + 400);
}

TEST_F(ArenaTest, NamesWhatDidNotFit) {
  Arena arena(device(), MemoryKind::kDevice);
  const auto taken = arena.take(size_t{1} << 52, "the KV cache");
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(taken.status().message().find("the KV cache"), std::string::npos);
  EXPECT_EQ(arena.bytes_taken(), 0u);
}

}  // namespace
}  // namespace foretoken
