#include "model/layer/attention/attention_scratch.h"

#include <gtest/gtest.h>

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

class AttentionScratchTest : public test::PartTest {};

TEST_F(AttentionScratchTest, HasTheRoomThatTheBackendAsksFor) {
  AttentionScratch scratch;
  const ScratchSource source = scratch_source(3);
  ASSERT_TRUE(scratch.take(source, 4, 16).ok());
  EXPECT_EQ(scratch.backend, &source.attention);
  EXPECT_EQ(scratch.workspace_floats, source.attention.workspace_floats(device(), 3, 4, 16));
  EXPECT_NE(scratch.sync, nullptr);
}

TEST_F(AttentionScratchTest, HasRoomForTheHeadsOfRanksThatShareAContext) {
  AttentionScratch scratch;
  ScratchSource source = scratch_source(3);
  ASSERT_TRUE(scratch.take(source, 4, 16).ok());
  EXPECT_EQ(scratch.states, nullptr);
  source.context.size = 2;
  ASSERT_TRUE(scratch.take(source, 4, 16).ok());
  EXPECT_NE(scratch.queries, nullptr);
  EXPECT_NE(scratch.states, nullptr);
  EXPECT_EQ(scratch.workspace_floats, source.attention.workspace_floats(device(), 3, 8, 16));
}

TEST_F(AttentionScratchTest, TellsOfRowsAndOfWhereTheyAreKept) {
  AttentionScratch scratch;
  ASSERT_TRUE(scratch.take(scratch_source(3), 4, 16).ok());
  LayerRows rows = rows_of(3, {5, 6, 7});
  rows.runs = RunLengths::kShort;
  LayerKv kv{};
  kv.kv.head_dim = 16;
  kv.max_blocks = 9;
  kv.window = 32;
  kv.kv_begin = 1;
  kv.repeats = true;
  const AttentionArgs args = scratch.args_of(rows, kv);
  EXPECT_EQ(args.counts, rows.counts);
  EXPECT_EQ(args.positions, rows.positions);
  EXPECT_EQ(args.row_slot, rows.row_slot);
  EXPECT_EQ(args.workspace, scratch.workspace);
  EXPECT_EQ(args.sync, scratch.sync);
  EXPECT_EQ(args.kv.head_dim, 16);
  EXPECT_EQ(args.max_blocks, 9);
  EXPECT_EQ(args.max_rows, 3);
  EXPECT_EQ(args.window, 32);
  EXPECT_EQ(args.kv_begin, 1);
  EXPECT_EQ(args.runs, RunLengths::kShort);
  EXPECT_TRUE(args.repeats);
}

}  // namespace
}  // namespace foretoken
