#include "engine/grammar/mask_pace.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

int spans_until_trusted(MaskPace& pace) {
  for (int spans = 0;; ++spans) {
    if (!pace.is_slow() || spans == 100000) return spans;
    pace.note_fast();
  }
}

TEST(MaskPace, EachRelapseMakesTheTrialLonger) {
  MaskPace pace(nullptr);
  EXPECT_FALSE(pace.is_slow());
  for (const int trial : {8, 64, 512, 4096}) {
    pace.note_slow();
    EXPECT_EQ(spans_until_trusted(pace), trial);
  }
}

TEST(MaskPace, ASlowSpanBeginsTheTrialAnewButMakesItNoLonger) {
  MaskPace pace(nullptr);
  pace.note_slow();
  for (int i = 0; i < 7; ++i) pace.note_fast();
  pace.note_slow();
  EXPECT_EQ(spans_until_trusted(pace), 8);
}

TEST(MaskPace, OutputsOfASlowGrammarStartSlow) {
  const auto habit = std::make_shared<std::atomic<bool>>(false);
  MaskPace first(habit), running(habit);
  first.note_slow();
  EXPECT_FALSE(running.is_slow());
  MaskPace second(habit);
  EXPECT_TRUE(second.is_slow());
  EXPECT_EQ(spans_until_trusted(second), 8);
}

}  // namespace
}  // namespace foretoken
