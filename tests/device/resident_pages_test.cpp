#include "device/cpu/resident_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "device/cpu/page_block.h"

namespace foretoken::cpu {
namespace {

size_t num_resident(const PageBlock& block) {
  std::vector<unsigned char> pages(block.size() / static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(mincore(block.data(), block.size(), pages.data()), 0);
  return static_cast<size_t>(std::count_if(pages.begin(), pages.end(),
                                           [](unsigned char page) { return (page & 1) != 0; }));
}

TEST(ResidentPages, GivesBackWhatCameInLater) {
  const PageBlock block(4 * PageBlock::kHugePage);
  block.data()[0] = std::byte{7};
  const size_t before = num_resident(block);
  const ResidentPages pages = ResidentPages::of(block.data(), block.size());
  block.data()[1] = std::byte{8};
  const size_t last = block.size() - 1;
  block.data()[PageBlock::kHugePage] = block.data()[last] = std::byte{9};
  if (num_resident(block) == before) GTEST_SKIP() << "the system counts all pages as resident";
  pages.give_back_others();
  EXPECT_EQ(num_resident(block), before);
  EXPECT_EQ(block.data()[0], std::byte{7});
  EXPECT_EQ(block.data()[1], std::byte{8}) << "on a page that was there";
  EXPECT_EQ(block.data()[PageBlock::kHugePage], std::byte{0});
  EXPECT_EQ(block.data()[last], std::byte{0});
  block.data()[last] = std::byte{5};
  EXPECT_EQ(block.data()[last], std::byte{5}) << "the memory stays usable";
}

TEST(ResidentPages, NothingAtAllIsNothingToGiveBack) { ResidentPages().give_back_others(); }

}  // namespace
}  // namespace foretoken::cpu
