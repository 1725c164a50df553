#include "device/cpu/page_block.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

namespace foretoken::cpu {
namespace {

TEST(PageBlock, IsZeroedAlignedAndItsOwn) {
  for (const size_t bytes : {size_t{1}, size_t{4097}, PageBlock::kHugePage - 1,
                             PageBlock::kHugePage, 3 * PageBlock::kHugePage + 5}) {
    PageBlock block(bytes);
    ASSERT_EQ(block.size(), bytes);
    const size_t align = bytes >= PageBlock::kHugePage ? PageBlock::kHugePage : 4096;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data()) % align, 0u);
    EXPECT_EQ(block.data()[0], std::byte{0});
    EXPECT_EQ(block.data()[bytes - 1], std::byte{0});
    std::memset(block.data(), 7, bytes);
    EXPECT_EQ(block.data()[bytes - 1], std::byte{7});
  }
}

TEST(PageBlock, MovesAndEnds) {
  PageBlock a(100), b;
  EXPECT_EQ(b.data(), nullptr);
  std::byte* memory = a.data();
  b = std::move(a);
  EXPECT_EQ(b.data(), memory);
  EXPECT_EQ(a.data(), nullptr);
  const PageBlock c(std::move(b));
  EXPECT_EQ(c.data(), memory);
  EXPECT_EQ(PageBlock(0).data(), nullptr);
}

TEST(PageBlock, TooMuchThrows) { EXPECT_THROW(PageBlock(size_t{1} << 60), std::bad_alloc); }

TEST(PageBlock, IsNotedAndTakenAgain) {
  MemoryLedger ledger;
  EXPECT_EQ(make_pages_for({&ledger, MemoryRole::kWeights}).ledger, nullptr);
  PageBlock block(1 << 20);
  std::memset(block.data(), 7, block.size());
  ledger.begin_again();
  {
    PageBlock again(1 << 20);
    EXPECT_EQ(again.data(), block.data());
    EXPECT_EQ(block.data()[5], std::byte{0});
    block.data()[5] = std::byte{3};
    PageBlock moved = std::move(again);
  }
  EXPECT_TRUE(ledger.end_again());
  EXPECT_EQ(make_pages_for({}).ledger, &ledger);
  EXPECT_EQ(block.data()[5], std::byte{3});
  clear_pages(block.data(), block.size());
  EXPECT_EQ(block.data()[5], std::byte{0});
}

}  // namespace
}  // namespace foretoken::cpu
