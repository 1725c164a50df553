#include "device/cpu/memory_nodes.h"

#include <gtest/gtest.h>

#include "device/cpu/page_block.h"

namespace foretoken::cpu {
namespace {

using Numbers = std::vector<int>;

TEST(MemoryNodes, ReadsLists) {
  EXPECT_EQ(parse_number_list("0"), Numbers{0});
  EXPECT_EQ(parse_number_list("0-2,5"), (Numbers{0, 1, 2, 5}));
  for (const char* wrong : {"", "a", "1-", "1,,2", "-1", "0 1", "99999999999"}) {
    EXPECT_EQ(parse_number_list(wrong), Numbers{}) << wrong;
  }
}

TEST(MemoryNodes, ThisMachineHasSomeAndSpreadsWithoutHarm) {
  EXPECT_GE(memory_nodes().size(), 1u);
  PageBlock block(1 << 16);
  spread_over_nodes(block.data(), block.size());
  block.data()[70] = std::byte{3};
  EXPECT_EQ(block.data()[70], std::byte{3});
}

}  // namespace
}  // namespace foretoken::cpu
