#include "engine/grammar/repair_pace.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

constexpr double kStepNs = 1e6;

// Steps until it is tried again.
int rest_of(RepairPace& pace) {
  int steps = 0;
  for (; pace.rests() && steps < 1'000'000; ++steps) pace.note_step();
  return steps;
}

void try_in_vain(RepairPace& pace) {
  for (int i = 0; i < 100 && !pace.rests(); ++i) pace.note_repaired(500'000, kStepNs);
}

TEST(RepairPace, GoesOnWhereItIsCheap) {
  RepairPace pace(0.1);
  for (int i = 0; i < 1000; ++i) pace.note_repaired(i % 50 == 49 ? 200'000 : 50'000, kStepNs);
  EXPECT_FALSE(pace.rests());
}

TEST(RepairPace, RestsLongerEachTimeThatItCostsTooMuch) {
  RepairPace pace(0.1);
  int last = 0;
  for (int i = 0; i < 5; ++i) {
    try_in_vain(pace);
    ASSERT_TRUE(pace.rests());
    const int rest = rest_of(pace);
    EXPECT_GT(rest, last);
    last = rest;
  }
  for (int i = 0; i < 1000; ++i) pace.note_repaired(1000, kStepNs);
  ASSERT_FALSE(pace.rests());
  for (int i = 0; i < 1000 && !pace.rests(); ++i) pace.note_repaired(500'000, kStepNs);
  EXPECT_LT(rest_of(pace), last);
}

TEST(RepairPace, WaitsUntilItKnowsWhatAStepTakes) {
  RepairPace pace(0.1);
  for (int i = 0; i < 100; ++i) pace.note_repaired(500'000, 0);
  EXPECT_FALSE(pace.rests());
}

}  // namespace
}  // namespace foretoken
