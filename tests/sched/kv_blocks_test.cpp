#include "sched/kv_blocks.h"

#include <gtest/gtest.h>

#include "sched/script.h"

namespace foretoken {
namespace {

// Blocks of four tokens; a window of eight touches three of them.
SchedulerConfig window_config(int num_window_blocks) {
  return {.num_blocks = 40,
          .num_window_blocks = num_window_blocks,
          .window = 8,
          .block_size = 4,
          .max_num_seqs = 4,
          .max_num_batched_tokens = 16};
}

// Positions 0 to 12 are computed: the row at 12 sees 5 to 12, so that block 0 is free.
TEST(KvBlocks, FreesWhatLiesBehindTheWindow) {
  EXPECT_EQ("", run(window_config(20), R"(
    submit a prompt=11 max=40
    plan
    span a tokens=11 samples first
    state free=36 window_free=16
    done a=1
    state window_free=17
    plan
    span a tokens=1 samples
    done a=1
    state free=35 window_free=17
    plan
    span a tokens=1 samples
    done a=1!
    state free=39 window_free=19
  )"));
}

// Chunks of four beside the window: the step in flight still reads what its first row sees.
TEST(KvBlocks, AStepInFlightKeepsTheWindowOfItsFirstRow) {
  SchedulerConfig config = window_config(20);
  config.max_num_batched_tokens = 4;
  EXPECT_EQ("", run(config, R"(
    submit a prompt=20 max=40
    plan
    span a tokens=4 first
    plan
    span a tokens=4
    done a=0
    plan
    span a tokens=4
    state window_free=16
    done a=0
    state window_free=16
    plan
    span a tokens=4
    done a=0
    state window_free=16
    done a=0
    state window_free=17
  )"));
}

TEST(KvBlocks, MemoryIsFlatOverEightWindows) {
  for (const int drafts : {0, 3}) {
    SchedulerConfig config = window_config(30);
    config.drafters = {{.has_kv = true}};
    const DraftGrant grant{.num_draft_tokens = drafts, .catch_up_rows = 1000};
    Scheduler scheduler(config);
    Sequence sequence;
    sequence.tokens.assign(5, 1);
    sequence.prompt_len = 5;
    sequence.max_len = 5 + 8 * 8 + 8;
    sequence.max_draft_tokens = drafts;
    scheduler.add(sequence);
    StepPlan plans[2];
    ASSERT_TRUE(scheduler.plan(plans[0], {&grant, 1}));
    // The window, and what two steps in flight can reach: 8 + 2 * (drafts + 1) positions.
    const int most = (8 + 2 * (drafts + 1)) / 4 + 2;
    for (int step = 0; sequence.state == SequenceState::kRunning; ++step) {
      (void)scheduler.plan(plans[(step + 1) % 2], {&grant, 1});
      const BlockPool& pool = *scheduler.window_blocks();
      EXPECT_LE(pool.num_usable() - pool.num_free(), most);
      const StepPlan& done = plans[step % 2];
      ASSERT_EQ(done.spans.size(), 1u);
      const std::vector<int32_t> ids(step % 2 == 0 ? done.spans[0].max_verified + 1u : 1u, 3);
      const bool ended = sequence.known_len() + static_cast<int>(ids.size()) >= 5 + 8 * 8;
      (void)scheduler.reconcile(done.spans[0], {.ids = ids, .ended = ended});
    }
    EXPECT_GE(sequence.known_len(), 5 + 8 * 8);
  }
}

TEST(KvBlocks, ALongPromptRunsInChunksWithinItsWindow) {
  EXPECT_EQ("", run(window_config(5), R"(
    submit a prompt=60 max=70
    plan
    span a tokens=16 first
    state window_free=0
    plan
    done a=0
    state window_free=2
    plan
    span a tokens=8
    plan
    done a=0
    plan
    span a tokens=8
    done a=0
    plan
    span a tokens=8
    done a=0
    plan
    span a tokens=8
    done a=0
    plan
    span a tokens=8
    done a=0
    plan
    span a tokens=4 samples
    state preemptions=0 running=1
  )"));
}

TEST(KvBlocks, EitherGroupShortPreemptsTheYoungest) {
  EXPECT_EQ("", run(window_config(5), R"(
    submit a prompt=7 max=20
    submit b prompt=7 max=20 base=300
    plan
    span a tokens=7 samples first
    span b tokens=7 samples first
    done a=1 b=1
    state free=35 window_free=0
    plan
    span a tokens=1 samples
    span b tokens=1 samples
    done a=1 b=1
    plan
    span a tokens=1 samples
    state running=1 waiting=1 preemptions=1
    done a=1!
    plan
    span b tokens=5 hits=4 samples first
  )"));
}

TEST(KvBlocks, DraftsGoBeforeASequenceDoes) {
  SchedulerConfig config = window_config(3);
  config.drafters = {{.has_kv = true}};
  EXPECT_EQ("", run(config, R"(
    submit a prompt=6 max=20 drafts=6
    plan limit=6 rows=20
    span a tokens=6 limit=6 rows=7 samples first
    done a=1
    plan
    span a tokens=1 samples
    state preemptions=0 window_free=0
  )"));
}

TEST(KvBlocks, AHitNeedsTheWindowBeforeItAlive) {
  EXPECT_EQ("", run(window_config(8), R"(
    submit a prompt=22 max=24
    plan
    span a tokens=16 first
    plan
    span a tokens=6 samples
    done a=0
    done a=1
    plan
    span a tokens=1 samples
    done a=1!
    state window_free=7 free=39
    submit b prompt=22 max=24
    plan
    span b tokens=2 hits=20 samples first
    state window_free=4
    done b=1!
    submit c prompt=22 max=24 base=500
    plan
    span c tokens=16 first
    plan
    span c tokens=6 samples
    state window_free=1
    done c=0
    done c=1!
    submit b2 prompt=22 max=24
    plan
    span b2 tokens=16 first
  )"));
}

// The end of the long prompt was overwritten, the window at its middle lives on.
TEST(KvBlocks, FewerHitsWhenOnlyAnEarlierWindowLives) {
  KvBlocks blocks({.num_blocks = 20, .num_window_blocks = 7, .window = 4, .block_size = 4});
  StepPlan plan;
  Sequence first;
  for (int i = 0; i < 17; ++i) first.tokens.push_back(i);
  first.max_len = 20;
  ASSERT_TRUE(blocks.take_hits(first, 16, true));
  ASSERT_TRUE(blocks.reserve(first, {17, 17}, plan));
  blocks.remember(first, 16);
  blocks.release(first);

  // The last blocks come free first: those of indices 5 (never used), 4 and 3 are handed out again.
  Sequence other;
  other.max_len = 20;
  ASSERT_TRUE(blocks.reserve(other, {1, 12}, plan));
  Sequence second;
  second.tokens = first.tokens;
  second.max_len = 20;
  ASSERT_TRUE(blocks.take_hits(second, 16, true));
  EXPECT_EQ(second.num_scheduled, 12);
  EXPECT_EQ(second.num_freed_window_blocks, 2);
  ASSERT_EQ(second.window_blocks.size(), 3u);
  EXPECT_NE(second.window_blocks[2], kNullBlock);
  plan.clear();
  blocks.announce_hits(second, plan);
  EXPECT_EQ(static_cast<int>(plan.blocks.size()), blocks.num_hits_to_announce(second));
  EXPECT_EQ(plan.blocks.size(), 4u);
  EXPECT_TRUE(plan.blocks.back().windowed);
  EXPECT_EQ(plan.blocks.back().index, 2);
  blocks.release(second);
  blocks.release(other);
  EXPECT_EQ(blocks.windowed()->num_free(), 6);
  EXPECT_EQ(blocks.full().num_free(), 19);
}

TEST(KvBlocks, RefusesAWindowThatCanNeverFit) {
  const KvBlocks small({.num_blocks = 40, .num_window_blocks = 3, .window = 8, .block_size = 4});
  EXPECT_TRUE(small.check_fits(4, 8).ok());
  const Status status = small.check_fits(4, 12);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("window of 8"), std::string::npos) << status.message();
  const KvBlocks enough({.num_blocks = 40, .num_window_blocks = 4, .window = 8, .block_size = 4});
  EXPECT_TRUE(enough.check_fits(4, 150).ok());
}

TEST(KvBlocks, WithoutWindowedLayersThereIsNoSecondPool) {
  KvBlocks blocks({.num_blocks = 5, .block_size = 4});
  EXPECT_EQ(blocks.windowed(), nullptr);
  EXPECT_EQ(blocks.num_groups(), 1);
  StepPlan plan;
  Sequence sequence;
  sequence.tokens.assign(9, 1);
  sequence.max_len = 12;
  ASSERT_TRUE(blocks.take_hits(sequence, 16, false));
  ASSERT_TRUE(blocks.reserve(sequence, {9, 9}, plan));
  blocks.remember(sequence, 9);
  sequence.num_computed = 9;
  blocks.free_behind_window(sequence);
  EXPECT_TRUE(sequence.window_blocks.empty());
  EXPECT_EQ(sequence.window_blocks.capacity(), 0u);
  EXPECT_EQ(plan.blocks.size(), 3u);
}

int count_moves(const std::vector<BlockMove>& moves, HostPart part) {
  int count = 0;
  for (const BlockMove& move : moves) count += move.part == part ? 1 : 0;
  return count;
}

Sequence known_sequence(int length) {
  Sequence sequence;
  for (int i = 0; i < length; ++i) sequence.tokens.push_back(i);
  sequence.max_len = length + 3;
  return sequence;
}

// The window at the prompt's end was overwritten, its full blocks were not.
TEST(KvBlocks, AWindowComesBackFromHostMemory) {
  KvBlocks blocks({.num_blocks = 20,
                   .num_window_blocks = 7,
                   .window = 4,
                   .block_size = 4,
                   .num_host_blocks = 9,
                   .num_host_windows = 9,
                   .max_block_assignments = 50});
  StepPlan plan;
  Sequence first = known_sequence(17);
  ASSERT_TRUE(blocks.take_hits(first, 16, true));
  ASSERT_TRUE(blocks.reserve(first, {17, 17}, plan));
  blocks.remember(first, 16);
  blocks.release(first);
  Sequence other;
  other.max_len = 20;
  ASSERT_TRUE(blocks.reserve(other, {1, 12}, plan));
  EXPECT_EQ(count_moves(plan.moves_out, HostPart::kWindowed), 1) << "one more was not full";
  EXPECT_EQ(count_moves(plan.moves_out, HostPart::kFull), 0);
  plan.spans.emplace_back();
  blocks.end_plan(plan);

  plan.clear();
  Sequence second = known_sequence(17);
  ASSERT_TRUE(blocks.take_hits(second, 16, true));
  EXPECT_EQ(second.num_scheduled, 16);
  EXPECT_EQ(second.num_freed_window_blocks, 3);
  EXPECT_EQ(second.window_blocks, (std::vector<BlockId>{0, 0, 0, 0}));
  blocks.restore_hits(second, plan);
  EXPECT_NE(second.window_blocks[3], kNullBlock);
  ASSERT_EQ(count_moves(plan.moves_in, HostPart::kWindowed), 1);
  EXPECT_EQ(plan.moves_in[0].block, second.window_blocks[3]);
  EXPECT_EQ(count_moves(plan.moves_in, HostPart::kFull), 0);
  plan.spans.emplace_back();
  blocks.end_plan(plan);
  EXPECT_EQ(blocks.host_stats().num_hit_tokens, 4) << "12 would be hits without";
  EXPECT_EQ(blocks.host_stats().num_queried_tokens, 5);
  EXPECT_EQ(blocks.host_stats().num_moved_in[1], 1);
  blocks.release(second);
  blocks.release(other);
  EXPECT_EQ(blocks.windowed()->num_free(), 6);
}

// One place for snapshots: what the next one needs moves out, and comes back through a place.
TEST(KvBlocks, ASnapshotComesBackFromHostMemory) {
  KvBlocks blocks({.num_blocks = 20,
                   .block_size = 4,
                   .num_host_blocks = 9,
                   .num_host_states = 3,
                   .max_block_assignments = 50,
                   .num_snapshots = 1,
                   .max_num_seqs = 2});
  StepPlan plan;
  Sequence sequences[] = {known_sequence(11), known_sequence(11)};
  sequences[1].cache_salt = 5;
  for (Sequence& sequence : sequences) {
    plan.clear();
    ASSERT_TRUE(blocks.take_hits(sequence, 16, true));
    ASSERT_TRUE(blocks.reserve(sequence, {11, 11}, plan));
    sequence.slot = 0;
    sequence.num_scheduled = blocks.next_state_end(sequence, 0);
    blocks.remember(sequence, sequence.num_scheduled);
    blocks.note_state(sequence, 0b1);
    blocks.keep_state(sequence, plan);
    ASSERT_EQ(plan.states_out.size(), 1u);
    plan.spans.emplace_back();
    blocks.end_plan(plan);
  }
  EXPECT_EQ(count_moves(plan.moves_out, HostPart::kStates), 1);
  for (Sequence& sequence : sequences) blocks.release(sequence);

  plan.clear();
  Sequence again = known_sequence(11);
  again.slot = 1;
  ASSERT_TRUE(blocks.take_hits(again, 16, true));
  EXPECT_EQ(again.num_scheduled, 8);
  blocks.restore_hits(again, plan);
  ASSERT_EQ(count_moves(plan.moves_in, HostPart::kStates), 1);
  EXPECT_EQ(count_moves(plan.moves_out, HostPart::kStates), 1) << "that of the other salt";
  EXPECT_EQ(blocks.bring_state(again, plan), 0) << "the drafter's entries are not known";
  ASSERT_EQ(plan.states_in.size(), 1u);
  EXPECT_EQ(plan.states_in[0].snapshot, plan.moves_in[0].block);
  plan.spans.emplace_back();
  blocks.end_plan(plan);
  EXPECT_EQ(blocks.host_stats().num_moved_out[2], 2);
  EXPECT_EQ(blocks.host_stats().num_hit_tokens, 8);
  blocks.release(again);
}

// A plan that is not run moves nothing.
TEST(KvBlocks, WhatAPlanWithoutSpansMovedOutIsForgotten) {
  KvBlocks blocks({.num_blocks = 20,
                   .block_size = 4,
                   .num_host_blocks = 9,
                   .num_host_states = 3,
                   .max_block_assignments = 50,
                   .num_snapshots = 1,
                   .max_num_seqs = 2});
  Sequence sequences[] = {known_sequence(11), known_sequence(11)};
  sequences[1].cache_salt = 5;
  for (Sequence& sequence : sequences) {
    StepPlan plan;
    ASSERT_TRUE(blocks.take_hits(sequence, 16, true));
    ASSERT_TRUE(blocks.reserve(sequence, {11, 11}, plan));
    sequence.slot = 0;
    sequence.num_scheduled = 8;
    blocks.remember(sequence, 8);
    blocks.note_state(sequence, 0);
    blocks.keep_state(sequence, plan);
    const bool is_run = &sequence == &sequences[0];
    EXPECT_EQ(count_moves(plan.moves_out, HostPart::kStates), is_run ? 0 : 1);
    if (is_run) plan.spans.emplace_back();
    blocks.end_plan(plan);
    EXPECT_EQ(plan.moves_out.size(), 0u);
  }
  Sequence again = known_sequence(11);
  ASSERT_TRUE(blocks.take_hits(again, 16, true));
  EXPECT_EQ(again.num_scheduled, 0);
}

}  // namespace
}  // namespace foretoken
