#include "kv/state_snapshots.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

// Two snapshots behind blocks 1 to 9.
class StateSnapshotsTest : public ::testing::Test {
 protected:
  int take(BlockId block, uint8_t drafters = 0) {
    const int snapshot = snapshots_.take(block, drafters);
    snapshots_.end_plan();
    return snapshot;
  }

  StateSnapshots snapshots_{2, 10, 8};
};

TEST_F(StateSnapshotsTest, ABlockFindsItsOwn) {
  EXPECT_EQ(snapshots_.find(3), -1);
  const int a = take(3, 0b10);
  const int b = take(4);
  EXPECT_EQ(snapshots_.find(3), a);
  EXPECT_EQ(snapshots_.find(4), b);
  EXPECT_NE(a, b);
  EXPECT_EQ(snapshots_.drafters(a), 0b10);
  EXPECT_EQ(snapshots_.drafters(b), 0);
  EXPECT_EQ(snapshots_.num_kept(), 2);
}

TEST_F(StateSnapshotsTest, GivesUpTheLeastRecentlyUsed) {
  const int a = take(1);
  EXPECT_EQ(snapshots_.next_to_go(), kNullBlock) << "a place is vacant";
  take(2);
  EXPECT_EQ(snapshots_.next_to_go(), 1);
  snapshots_.lock(a);
  EXPECT_TRUE(snapshots_.is_locked(a));
  EXPECT_EQ(snapshots_.next_to_go(), 2);
  snapshots_.end_plan();
  EXPECT_FALSE(snapshots_.is_locked(a));
  take(3);
  EXPECT_EQ(snapshots_.find(1), a);
  EXPECT_EQ(snapshots_.find(2), -1);
}

TEST_F(StateSnapshotsTest, WhatAPlanReadsOrWritesStays) {
  const int a = take(1);
  snapshots_.lock(a);
  snapshots_.lock(a);
  EXPECT_NE(snapshots_.take(2, 0), -1);
  EXPECT_FALSE(snapshots_.has_place());
  EXPECT_EQ(snapshots_.next_to_go(), kNullBlock);
  EXPECT_EQ(snapshots_.take(3, 0), -1);
  snapshots_.end_plan();
  EXPECT_EQ(snapshots_.find(1), a);
  EXPECT_NE(take(3), -1);
  EXPECT_EQ(snapshots_.num_kept(), 2);
}

TEST_F(StateSnapshotsTest, GoesWithItsBlockAndLeavesItsPlaceFirst) {
  const int a = take(1);
  take(2);
  snapshots_.forget(2);
  snapshots_.forget(5);
  EXPECT_EQ(snapshots_.find(2), -1);
  EXPECT_EQ(snapshots_.num_kept(), 1);
  take(3);
  EXPECT_EQ(snapshots_.find(1), a) << "the other place was vacant";
  // In the plan that reads it: its place is free when the plan ends.
  snapshots_.lock(a);
  snapshots_.forget(1);
  EXPECT_EQ(snapshots_.find(1), -1);
  snapshots_.end_plan();
  EXPECT_EQ(take(4), a);
}

}  // namespace
}  // namespace foretoken
