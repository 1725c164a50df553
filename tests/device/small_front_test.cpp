#include "device/small_front.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "device/cpu/cpu_device.h"

namespace foretoken {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

size_t resident_in(std::byte* begin, size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((bytes + page - 1) / page);
  EXPECT_EQ(mincore(begin, bytes, pages.data()), 0);
  return page * static_cast<size_t>(std::count_if(pages.begin(), pages.end(),
                                                  [](unsigned char p) { return (p & 1) != 0; }));
}

class SmallFront : public ::testing::Test {
 protected:
  SmallFront() : memory_(static_cast<std::byte*>(device_->allocate(kBytes, MemoryKind::kDevice))) {}
  ~SmallFront() override { device_->deallocate(memory_, MemoryKind::kDevice); }

  static constexpr size_t kBytes = 16 * kMiB;
  const std::unique_ptr<Device> device_ = cpu::open_cpu_device({}, 1).value();
  std::byte* const memory_;
};

// Parts of one allocation that begin anywhere, as those of a KV cache do.
TEST_F(SmallFront, ATouchOfTheFrontTakesSmallPages) {
  for (const size_t at : {size_t{0}, 4 * kMiB + 256, 9 * kMiB + 12345}) {
    prefer_small_front(*device_, memory_ + at, 4 * kMiB);
    for (size_t i = 0; i < kSmallFront; i += kSmallFront / 4) memory_[at + i] = std::byte{1};
  }
  EXPECT_LE(resident_in(memory_, kBytes), size_t{12 * 64} << 10);
}

TEST_F(SmallFront, WhatLiesBehindStaysAsItWas) {
  const auto touched = [&](size_t at) {
    memory_[at] = std::byte{1};
    return resident_in(memory_ + at / (2 * kMiB) * (2 * kMiB), 2 * kMiB);
  };
  const size_t before = touched(14 * kMiB);
  prefer_small_front(*device_, memory_, kBytes);
  EXPECT_EQ(touched(4 * kMiB), before);
}

TEST_F(SmallFront, NothingAndLessThanAPageAreNoFault) {
  prefer_small_front(*device_, memory_, 0);
  prefer_small_front(*device_, memory_ + 1, 5);
  prefer_small_front(*device_, memory_ + kBytes - 100, 100);
  memory_[kBytes - 1] = std::byte{1};
}

TEST_F(SmallFront, MemoryOfNobodyIsAProgrammersError) {
  std::byte other[8];
  EXPECT_DEATH(device_->prefer_small_pages(other, sizeof other), "");
  EXPECT_DEATH(device_->prefer_small_pages(memory_ + 1, kBytes), "");
}

}  // namespace
}  // namespace foretoken
