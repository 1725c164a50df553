#include "sched/prompt_share.h"

#include <gtest/gtest.h>

#include "sched/script.h"

namespace foretoken {
namespace {

constexpr int kShareUnit = 512;
constexpr int kMaxStepRows = 8192;

int share(int decoding_rows, int64_t pending_rows) {
  PromptDemand demand;
  demand.decoding_rows = decoding_rows;
  demand.pending_rows = pending_rows;
  return prompt_share(demand, kShareUnit, kMaxStepRows);
}

TEST(PromptShare, AStepIsOfWholeUnits) {
  EXPECT_EQ(share(16, 1024), 512 - 16);
  EXPECT_EQ(share(16, 3 * kShareUnit), 512 - 16);
  EXPECT_EQ(share(16, 3 * kShareUnit + 1), 1024 - 16);
  EXPECT_EQ(share(0, 2048), 1024);
  EXPECT_EQ(share(60, int64_t{1} << 40), 1024 - 60);
}

TEST(PromptShare, HalfAUnitIsLeftBesideManySequences) {
  EXPECT_EQ(share(256, 100), 512 - 256);
  EXPECT_EQ(share(257, 100), 1024 - 257);
  EXPECT_EQ(share(2000, 100), 2560 - 2000);
}

TEST(PromptShare, UnitsAreSmallerFarBehind) {
  const auto behind = [](int prefix_len, int unit) {
    PromptDemand demand;
    demand.decoding_rows = 8;
    demand.pending_rows = 10;
    demand.prefix_len = prefix_len;
    return prompt_share(demand, unit, kMaxStepRows);
  };
  EXPECT_EQ(behind(32767, 512), 512 - 8);
  EXPECT_EQ(behind(32768, 512), 256 - 8);
  EXPECT_EQ(behind(70000, 512), 128 - 8);
  EXPECT_EQ(behind(1000000, 512), 128 - 8);
  EXPECT_EQ(behind(32768, 1024), 512 - 8);
  EXPECT_EQ(behind(1000000, 16), 16 - 8);
}

TEST(PromptShare, AStepThatIsFullLeavesARow) {
  EXPECT_EQ(share(kMaxStepRows - 1, 100), 1);
  EXPECT_EQ(share(kMaxStepRows, 100), 1);
  PromptDemand demand;
  demand.decoding_rows = 3;
  demand.pending_rows = 100;
  EXPECT_EQ(prompt_share(demand, kShareUnit, 64), 61);
}

// A step without drafts brings a sequence a token, one with three about two and a half.
TEST(PromptShare, StepsGrowWhereFirstTokensWaitLongerThanOthers) {
  const auto beside = [](int num_decoding, int drafts, int64_t queued_rows) {
    PromptDemand demand;
    demand.num_decoding = num_decoding;
    demand.decoding_rows = num_decoding * (1 + drafts);
    demand.pending_rows = demand.queued_rows = queued_rows;
    return prompt_share(demand, kShareUnit, kMaxStepRows) + demand.decoding_rows;
  };
  EXPECT_EQ(beside(16, 3, 8191), 1024);
  EXPECT_EQ(beside(16, 3, 8192), 2048);
  EXPECT_EQ(beside(16, 3, 12288), 3072);
  EXPECT_EQ(beside(16, 3, 1 << 20), 3072);
  EXPECT_EQ(beside(16, 0, 20479), 1024);
  EXPECT_EQ(beside(16, 0, 20480), 2048);
  EXPECT_EQ(beside(0, 0, 1 << 20), 1024);
  // Many drafts are no better than four.
  EXPECT_EQ(beside(16, 4, 6826), 1024);
  EXPECT_EQ(beside(16, 15, 6826), 1024);
  EXPECT_EQ(beside(16, 15, 6827), 2048);
}

// Behind a long prefix rows are dear, whoever waits.
TEST(PromptShare, TheQueueIsNoLongerFarBehind) {
  PromptDemand demand;
  demand.num_decoding = 16;
  demand.decoding_rows = 64;
  demand.pending_rows = 60000;
  demand.queued_rows = 2048;
  demand.prefix_len = 70000;
  EXPECT_EQ(prompt_share(demand, kShareUnit, kMaxStepRows), 256 - 64);
}

const SchedulerConfig kSharingConfig{.num_blocks = 400,
                                     .block_size = 4,
                                     .max_num_seqs = 4,
                                     .max_num_batched_tokens = 128,
                                     .paced_prompt_len = 100,
                                     .wave_rows = 32,
                                     .share_rows = 16};

// Units of 16 rows, those of sequences that decode among them; two units for more than three.
TEST(Scheduler, PromptsShareWholeUnitsBesideSequencesThatDecode) {
  EXPECT_EQ("", run(kSharingConfig, R"(
    submit a prompt=60 max=99
    plan
    span a tokens=60 samples first
    submit b prompt=20 max=40 base=300
    plan
    span a tokens=1 samples
    span b tokens=15 first
    submit c prompt=44 max=60 base=500
    plan
    span a tokens=1 samples
    span b tokens=5 samples
    span c tokens=26 first
    plan
    span a tokens=1 samples
    span b tokens=1 samples
    span c tokens=14
    plan
    span a tokens=1 samples
    span b tokens=1 samples
    span c tokens=4 samples
  )"));
}

// Where nobody decodes, one prompt is computed as far as steps go, and several one after the other.
TEST(Scheduler, OnlyPromptsTogetherShare) {
  EXPECT_EQ("", run(kSharingConfig, R"(
    submit a prompt=40 max=41
    submit b prompt=20 max=21 base=300
    plan
    span a tokens=32 first
    plan
    span a tokens=8 samples
    span b tokens=8 first
    plan
    span b tokens=12 samples
  )"));
}

// Of prompts that are paced the one that lacks least has three quarters of what the others leave.
TEST(Scheduler, TheShortestLongPromptGoesFirst) {
  EXPECT_EQ("", run(kSharingConfig, R"(
    pace 6 128
    submit a prompt=300 max=400
    plan
    span a tokens=128 first
    submit b prompt=120 max=200 base=500
    plan
    span a tokens=24
    span b tokens=8 first
    plan
    span a tokens=8
    span b tokens=24
    submit c prompt=3 max=9 base=700
    plan
    span a tokens=4
    span b tokens=12
    span c tokens=3 samples first
    plan
    span a tokens=7
    span b tokens=23
    span c tokens=1 samples
  )"));
}

// A bound that users give holds instead.
TEST(Scheduler, ABoundTakesThePlaceOfShares) {
  EXPECT_EQ("", run(kSharingConfig, R"(
    bound 25
    submit a prompt=10 max=40
    plan
    span a tokens=10 samples first
    submit b prompt=60 max=90 base=300
    plan
    span a tokens=1 samples
    span b tokens=24 first
  )"));
}

}  // namespace
}  // namespace foretoken
