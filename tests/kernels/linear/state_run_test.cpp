#include "kernels/linear/state_run.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken {
namespace {

TEST(StateRun, RowsOfOneSequenceAtPositionsSideBySideMakeARun) {
  const std::vector<int32_t> positions = {4, 5, 6, 7, 0, 9}, slots = {1, 1, 1, 2, 2, 2};
  const StateRows rows{positions.data(), slots.data(), 6};
  EXPECT_EQ(rows.num_runs(), 4);
  EXPECT_EQ(rows.run_end(0), 3);
  EXPECT_EQ(rows.run_end(3), 4);
  EXPECT_EQ(rows.run_end(4), 5);
  EXPECT_FALSE(rows.continues(0));
  EXPECT_FALSE(rows.continues(6));
  EXPECT_TRUE(rows.same_run(0, 2));
  EXPECT_FALSE(rows.same_run(0, 3));
  EXPECT_FALSE(rows.same_run(0, -1));
}

TEST(StateRun, WhatMayBeTakenBackIsNotKept) {
  const StateRun prompt = state_run(0, 10, 99, 30, 4);
  EXPECT_EQ(prompt.from, 0) << "whatever was there";
  EXPECT_EQ(prompt.keep, 10);
  EXPECT_EQ(state_run(10, 20, 10, 30, 4).keep, 29) << "the last known row may come again";
  const StateRun drafts = state_run(29, 4, 29, 30, 4);
  EXPECT_EQ(drafts.from, 29);
  EXPECT_EQ(drafts.keep, 29);
  const StateRun next = state_run(31, 1, 29, 32, 4);
  EXPECT_EQ(next.from, 29);
  EXPECT_EQ(next.keep, 31);
  EXPECT_EQ(state_run(32, 1, 29, 30, 4).keep, 29) << "a pass over drafts";
}

TEST(StateRun, RunsThatDoNotFollowTakeTheStateAsItIs) {
  EXPECT_EQ(state_run(7, 2, 20, 30, 4).from, 7);
  EXPECT_EQ(state_run(40, 2, 20, 60, 4).from, 40);
}

TEST(StateRun, RowsTellWhatTheirRunsLeave) {
  const std::vector<int32_t> positions = {0, 1, 2, 3, 8, 9}, slots = {1, 1, 1, 1, 0, 0};
  const StateRows rows{positions.data(), slots.data(), 6};
  EXPECT_FALSE(stays_pending(rows, 1, 3, 2));
  EXPECT_TRUE(stays_pending(rows, 2, 3, 2));
  EXPECT_FALSE(stays_pending(rows, 1, 1, 2)) << "its place is row 3's";
  EXPECT_EQ(kept_behind(rows, 3, 77, 4), 3) << "a run from position 0";
  EXPECT_EQ(kept_behind(rows, 3, 77, 1), 0);
  EXPECT_EQ(kept_behind(rows, 5, 8, 20), 10);
  EXPECT_EQ(kept_behind(rows, 5, 8, 9), 8);
}

}  // namespace
}  // namespace foretoken
