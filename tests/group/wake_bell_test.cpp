#include "group/wake_bell.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <semaphore>

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

// A pipe's end is readable while a byte is in it.
TEST(NewsWatch, WakesOnceForEachTimeThatItIsArmed) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  std::counting_semaphore<> woken(0);
  {
    NewsWatch watch({ends[0]});
    watch.set_waker([&] { woken.release(); });
    watch.arm();
    EXPECT_FALSE(woken.try_acquire_for(std::chrono::milliseconds(20)));
    watch.disarm();
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    EXPECT_FALSE(woken.try_acquire_for(std::chrono::milliseconds(20)));
    for (int i = 0; i < 3; ++i) {
      watch.arm();
      EXPECT_TRUE(woken.try_acquire_for(std::chrono::minutes(1)));
    }
    watch.set_waker(nullptr);
    watch.arm();
  }
  EXPECT_FALSE(woken.try_acquire());
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace foretoken::group
