#include "device/wait_pacer.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

constexpr int64_t kUs = 1000;

// Steps that end every `interval`; the next wait begins right behind each.
int64_t run(WaitPacer& pacer, int64_t now, int64_t interval, int count) {
  for (int i = 0; i < count; ++i) {
    pacer.begin(now);
    now += interval;
    pacer.end(now);
  }
  return now;
}

TEST(WaitPacer, KnowsNothingAtFirst) {
  WaitPacer pacer;
  pacer.begin(1'000'000'000);
  EXPECT_EQ(pacer.sleep_ns(1'000'000'000), 0);
  EXPECT_EQ(pacer.sleep_ns(1'000'000'000 + 150 * kUs), 0);
  EXPECT_GT(pacer.sleep_ns(1'000'000'000 + 300 * kUs), 0);
}

TEST(WaitPacer, ShortStepsAreWaitedForAwake) {
  WaitPacer pacer;
  const int64_t now = run(pacer, 0, 100 * kUs, 20);
  pacer.begin(now);
  for (int64_t at = 0; at < 250 * kUs; at += 10 * kUs) EXPECT_EQ(pacer.sleep_ns(now + at), 0);
}

TEST(WaitPacer, LongStepsAreSleptThroughUpToShortlyBeforeTheirEnd) {
  WaitPacer pacer;
  const int64_t step = 4000 * kUs;
  const int64_t now = run(pacer, 0, step, 20);
  pacer.begin(now);
  const int64_t sleep = pacer.sleep_ns(now);
  EXPECT_GT(sleep, step * 9 / 10 - 100 * kUs);
  EXPECT_LT(sleep, step - 60 * kUs);
  EXPECT_EQ(pacer.sleep_ns(now + sleep), 0);
  EXPECT_EQ(pacer.sleep_ns(now + step + 500 * kUs), 0);
  // Something longer came in between: naps, so that no core is burnt.
  EXPECT_GT(pacer.sleep_ns(now + 2 * step), 0);
  EXPECT_LE(pacer.sleep_ns(now + 2 * step), 50 * kUs);
}

TEST(WaitPacer, TheShortestOfLateIsExpected) {
  WaitPacer pacer;
  int64_t now = run(pacer, 0, 4000 * kUs, 20);
  now = run(pacer, now, 200 * kUs, 1);
  pacer.begin(now);
  EXPECT_LT(pacer.sleep_ns(now), 200 * kUs);
  now = run(pacer, now, 4000 * kUs, 10);
  pacer.begin(now);
  EXPECT_GT(pacer.sleep_ns(now), 3000 * kUs);
}

}  // namespace
}  // namespace foretoken
