#include "sched/time_bound.h"

#include <gtest/gtest.h>

#include "sched/script.h"

namespace foretoken {
namespace {

constexpr int64_t kMs = 1'000'000;

// Steps take `first` ms and `row` microseconds more for each row.
CostTable line(int64_t first, int64_t row) {
  CostTable times;
  times.target.add(1, first * kMs + row * 1000);
  times.target.add(1000, first * kMs + row * 1'000'000);
  return times;
}

TEST(TimeBound, AsManyRowsAsTheTableAllows) {
  const CostTable times = line(10, 100);
  const TimeBound bound(50 * kMs, 2048, times);
  EXPECT_EQ(bound.prompt_rows({.num_seqs = 1}), 399);
  EXPECT_EQ(bound.prompt_rows({.num_seqs = 100}), 300);
  EXPECT_EQ(bound.prompt_rows({.num_seqs = 100, .num_draft_tokens = 150}), 150);
  EXPECT_EQ(bound.prompt_rows({.num_seqs = 100, .num_prompt_rows = 77}), 300);
}

TEST(TimeBound, WhatSequencesKnowTakesTime) {
  CostTable times = line(10, 100);
  times.context.push_back({0, 1'000'000});
  times.known_tokens = 10;
  const TimeBound bound(50 * kMs, 2048, times);
  // 10,000 tokens beyond those of the table take 10 ms.
  EXPECT_EQ(bound.prompt_rows({.num_seqs = 100, .num_tokens = 11'000}), 200);
}

TEST(TimeBound, PromptsAlwaysGetAFewRows) {
  const CostTable times = line(60, 100);
  EXPECT_EQ(TimeBound(50 * kMs, 2048, times).prompt_rows({.num_seqs = 3}), TimeBound::kLeastRows);
  EXPECT_EQ(TimeBound(50 * kMs, 20, times).prompt_rows({.num_seqs = 15}), 5);
  EXPECT_EQ(TimeBound(50 * kMs, 20, times).prompt_rows({.num_seqs = 20}), 1);
}

TEST(TimeBound, DecodingSequencesKeepTheirRows) {
  const CostTable times = line(1, 1);
  EXPECT_EQ(TimeBound(50 * kMs, 512, times).prompt_rows({.num_seqs = 12, .num_draft_tokens = 100}),
            400);
}

TEST(TimeBound, StepsCorrectTheTable) {
  const CostTable times = line(10, 100);
  TimeBound bound(50 * kMs, 2048, times);
  StepLoad load{.num_seqs = 100, .num_prompt_rows = 300};
  // One slow step may have waited for something else.
  bound.observe(load, 500 * kMs);
  EXPECT_EQ(bound.prompt_rows(load), 300);
  bound.observe(load, 75 * kMs);
  EXPECT_NEAR(bound.prompt_rows(load), 133, 1);
  bound.restart();
  EXPECT_EQ(bound.prompt_rows(load), 300);
  // Steps without prompts are what the length policy looks at.
  bound.observe({.num_seqs = 100}, 400 * kMs);
  bound.observe({.num_seqs = 100}, 400 * kMs);
  EXPECT_EQ(bound.prompt_rows(load), 300);
}

// Devices of other kinds than the table says: the steps come to the bound and stay below it.
TEST(TimeBound, StepsComeToTheBound) {
  struct World {
    int64_t first, row;  // ms, microseconds
  };
  for (const World& world : {World{5, 10}, World{20, 1000}, World{0, 250}, World{1, 30}}) {
    // Every row counts for a step of its own, as in a guess.
    const CostTable times = line(0, 8000);
    TimeBound bound(50 * kMs, 8192, times);
    StepLoad load{.num_seqs = 8};
    int64_t ns = 0;
    for (int i = 0; i < 200; ++i) {
      load.num_prompt_rows = bound.prompt_rows(load);
      ns = world.first * kMs + world.row * 1000 * (load.num_prompt_rows + load.num_seqs);
      EXPECT_LE(ns, 51 * kMs) << world.first << ' ' << world.row << " in step " << i;
      bound.observe(load, ns);
    }
    EXPECT_GE(ns, 45 * kMs) << world.first << ' ' << world.row;
  }
}

// Rows take longer behind longer prefixes: what the first prompts told holds for the next ones.
TEST(TimeBound, RowsBehindLongPrefixesAreFewer) {
  const CostTable times = line(10, 100);
  TimeBound bound(50 * kMs, 2048, times);
  int first_rows = 0, last_rows = 0;
  for (int prompt = 0; prompt < 20; ++prompt) {
    for (int prefix = 0; prefix < 8000;) {
      StepLoad load{.num_seqs = 8, .prefix_len = prefix};
      load.num_prompt_rows = bound.prompt_rows(load);
      const int64_t row_ns = 50'000 + 50 * prefix;
      const int64_t ns = 8 * kMs + row_ns * load.num_prompt_rows;
      if (prompt > 10) {
        EXPECT_LE(ns, 56 * kMs) << "behind " << prefix;
        EXPECT_GE(ns, 28 * kMs) << "behind " << prefix;
      }
      bound.observe(load, ns);
      if (prefix == 0) first_rows = load.num_prompt_rows;
      last_rows = load.num_prompt_rows;
      prefix += load.num_prompt_rows;
    }
  }
  EXPECT_GT(first_rows, 5 * last_rows);
}

TEST(TimeBound, APromptBesideDecodingIsCutToFit) {
  EXPECT_EQ(
      "", run({.num_blocks = 200, .block_size = 4, .max_num_seqs = 4, .max_num_batched_tokens = 64},
              R"(
    bound 30
    submit a prompt=60 max=90
    plan
    span a tokens=60 samples first
    submit b prompt=100 max=120 base=300
    plan
    span a tokens=1 samples
    span b tokens=29 first
    submit c prompt=20 max=40 base=500
    plan
    span a tokens=1 samples
    span b tokens=29
    finish a
    plan
    span b tokens=42 samples
    span c tokens=20 samples first
  )"));
}

TEST(TimeBound, DraftsTakePromptRows) {
  EXPECT_EQ("", run(drafting({.num_blocks = 200,
                              .block_size = 4,
                              .max_num_seqs = 4,
                              .max_num_batched_tokens = 64}),
                    R"(
    bound 30
    submit a prompt=10 max=90 drafts=4
    plan limit=4
    span a tokens=10 limit=4 samples first
    submit b prompt=100 max=120 base=300
    plan limit=4
    span a tokens=1 drafts=4 limit=4 samples
    span b tokens=25 first
  )"));
}

TEST(TimeBound, LongPromptsLeaveRowsToShortOnes) {
  EXPECT_EQ("", run({.num_blocks = 200,
                     .block_size = 4,
                     .max_num_seqs = 4,
                     .max_num_batched_tokens = 64,
                     .paced_prompt_len = 40},
                    R"(
    pace 6 50
    bound 41
    submit a prompt=3 max=90
    plan
    span a tokens=3 samples first
    submit b prompt=200 max=220 base=300
    plan
    span a tokens=1 samples
    span b tokens=40 first
    submit c prompt=30 max=50 base=600
    plan
    span a tokens=1 samples
    span b tokens=20
    span c tokens=20 first
    plan
    span a tokens=1 samples
    span b tokens=20
    span c tokens=10 samples
    plan
    span a tokens=1 samples
    span b tokens=39
    span c tokens=1 samples
  )"));
}

}  // namespace
}  // namespace foretoken
