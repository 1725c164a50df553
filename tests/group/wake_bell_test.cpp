#include "group/wake_bell.h"

#include <gtest/gtest.h>

#include <array>

namespace foretoken::group {
namespace {

TEST(WakeBell, TheFirstThatComesToAMeetingWakesTheOthers) {
  WakeBell bell(3);
  std::array<int, 3> woken{};
  for (int rank = 0; rank < 3; ++rank) {
    bell.set_waker(rank, [&woken, rank] { ++woken[static_cast<std::size_t>(rank)]; });
  }
  bell.ring(1, 1);
  EXPECT_EQ(woken, (std::array{1, 0, 1}));
  bell.ring(0, 1);
  bell.ring(2, 1);
  EXPECT_EQ(woken, (std::array{1, 0, 1}));
  bell.ring(0, 2);
  EXPECT_EQ(woken, (std::array{1, 1, 2}));
  bell.set_waker(1, nullptr);
  bell.ring(2, 3);
  EXPECT_EQ(woken, (std::array{2, 1, 2}));
  bell.wake_all();
  EXPECT_EQ(woken, (std::array{3, 1, 3}));
}

}  // namespace
}  // namespace foretoken::group
