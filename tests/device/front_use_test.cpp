#include "device/front_use.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "device/cpu/page_block.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

TEST(FrontUse, ChangesNoBytes) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  cpu::PageBlock block(2 * cpu::PageBlock::kHugePage);
  std::memset(block.data(), 7, block.size());
  const std::vector<std::byte> before(block.data(), block.data() + block.size());
  expect_use_from_front(*test_device(), block.data() + 100, block.size() - 100);
  EXPECT_EQ(std::memcmp(before.data(), block.data(), block.size()), 0);
}

}  // namespace
}  // namespace foretoken
