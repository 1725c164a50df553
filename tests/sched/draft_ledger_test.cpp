#include "sched/draft_ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "sched/script.h"

namespace foretoken {
namespace {

constexpr SchedulerDrafter kHead{.has_kv = true};
constexpr SchedulerDrafter kDraftModel{.has_kv = true, .keeps_written = true};
constexpr SchedulerDrafter kLookup{.looks_up = true};

SchedulerConfig config_of(std::vector<SchedulerDrafter> drafters) {
  return {.num_blocks = 60,
          .block_size = 4,
          .max_num_seqs = 4,
          .max_num_batched_tokens = 16,
          .drafters = std::move(drafters)};
}

TEST(DraftLedger, ThePromptIsCaughtUpWithItsChunksAndThenWhatAStepCanCommit) {
  EXPECT_EQ("", run(config_of({kHead}), R"(
    submit a prompt=20 max=60 drafts=3
    plan limit=3 rows=100
    span a tokens=16 rows=16 first
    state passes=0 catch_up=16 drafting=0
    plan limit=3 rows=100
    span a tokens=4 limit=3 rows=5 samples
    state passes=3 catch_up=5 drafting=1
    plan limit=3 rows=100
    span a tokens=1 drafts=3 limit=3 rows=4 samples
    done a=0
    done a=1
    plan limit=3 rows=100
    span a tokens=1 drafts=3 limit=3 rows=4 samples
    done a=4
    state ready=1 decoding=1 coming=0
    plan limit=2 rows=100
    span a tokens=1 drafts=3 limit=2 rows=4 samples
    plan limit=3 rows=100
    span a tokens=1 drafts=2 limit=3 rows=3 samples
  )"));
}

TEST(DraftLedger, WhatADraftModelWroteStaysAndOnlyTwoEntriesCanBeMissing) {
  EXPECT_EQ("", run(config_of({kDraftModel}), R"(
    submit a prompt=6 max=60 drafts=5
    plan limit=5 rows=100
    span a tokens=6 limit=5 rows=7 samples first
    plan limit=5 rows=100
    span a tokens=1 drafts=5 limit=5 rows=2 samples
    plan limit=0 rows=100
    span a tokens=1 drafts=5 rows=2 samples
    plan limit=5 rows=100
    span a tokens=1 limit=5 rows=1 samples
  )"));
}

TEST(DraftLedger, WithoutAGrantTheNextStepIsPlain) {
  EXPECT_EQ("", run(config_of({kLookup}), R"(
    submit a prompt=4 max=60 drafts=3
    plan limit=4
    span a tokens=4 limit=3 samples first
    plan
    span a tokens=1 drafts=3 samples
    plan limit=2
    span a tokens=1 limit=2 samples
    plan
    span a tokens=1 drafts=2 samples
    state passes=0
  )"));
}

// The token budget cuts the drafts that stand to every j < K.
TEST(DraftLedger, TheTokenBudgetCutsDraftsAtEachPlace) {
  for (int rows = 2; rows <= 6; ++rows) {
    SchedulerConfig config = config_of({kHead});
    config.max_num_batched_tokens = rows;
    const int left = rows - 2;  // one row each comes first
    const std::string cut = left > 0 ? " drafts=" + std::to_string(std::min(left, 4)) : "";
    const std::string caught = " rows=" + std::to_string(std::min(left, 4) + 1);
    EXPECT_EQ("", run(config, R"(
      submit a prompt=2 max=60 drafts=4
      plan limit=4 rows=100
      span a tokens=2 limit=4 rows=3 samples first
      submit b prompt=1 max=60 base=300
      plan limit=4 rows=100
      span a tokens=1)" + cut + " limit=4" +
                                  caught + R"( samples
      span b tokens=1 samples first
    )")) << rows;
  }
}

// Sequences that end at max_len - K .. 0 of what could be drafted.
TEST(DraftLedger, DraftsEndWithTheSequence) {
  for (int room = 1; room <= 6; ++room) {
    const auto part = [](const char* key, int value) {
      return value > 0 ? std::string(" ") + key + "=" + std::to_string(value) : "";
    };
    // After the prompt one id is certain; the last one is never a draft.
    const int first = std::min(4, std::max(0, room - 2));
    const int second = std::min(4, std::max(0, room - 3));
    std::string script = "submit a prompt=3 max=" + std::to_string(3 + room) + " drafts=4\n" +
                         "plan limit=4 rows=100\n" + "span a tokens=3" + part("limit", first) +
                         part("rows", first > 0 ? 4 : 0) + " samples first\n" +
                         "plan limit=4 rows=100\n";
    if (room > 1) {
      script += "span a tokens=1" + part("drafts", first) + part("limit", second) +
                part("rows", first > 0 ? std::min(first + 1, room - 1) : 0) + " samples\n";
    }
    EXPECT_EQ("", run(config_of({kHead}), script)) << script;
  }
}

TEST(DraftLedger, TheDraftersOwnLengthEndsDraftingForThatSequenceOnly) {
  EXPECT_EQ("", run(config_of({{.has_kv = true, .max_len = 8}}), R"(
    submit a prompt=6 max=60 drafts=4
    submit b prompt=3 max=60 drafts=4 base=300
    submit c prompt=9 max=60 drafts=4 base=500
    plan limit=4 rows=100
    span a tokens=6 limit=2 rows=7 samples first
    span b tokens=3 limit=4 rows=4 samples first
    span c tokens=7 first
    plan limit=4 rows=100
    span a tokens=1 drafts=2 limit=1 rows=1 samples
    span b tokens=1 drafts=4 limit=4 rows=4 samples
    span c tokens=2 samples
    done a=1 b=1 c=0
    done a=3 b=1 c=1
    plan limit=4 rows=100
    span a tokens=1 drafts=1 samples
    span b tokens=1 drafts=4 limit=3 rows=3 samples
    span c tokens=1 samples
    state decoding=1 ready=1
  )"));
}

TEST(DraftLedger, APausedDrafterCatchesUpFromWhereItStood) {
  EXPECT_EQ("", run(config_of({kHead}), R"(
    submit a prompt=4 max=60 drafts=2
    plan limit=2 rows=100
    span a tokens=4 limit=2 rows=5 samples first
    plan
    span a tokens=1 drafts=2 samples
    done a=1:5
    done a=3:3
    state ready=0 decoding=1 fewest=4
    plan
    span a tokens=1 samples
    done a=1:4
    plan
    span a tokens=1 samples
    done a=1:5
    state ready=0 fewest=6
    plan limit=2 rows=100 missing=5 class=0
    span a tokens=1 samples
    done a=1:6
    plan limit=2 rows=100 missing=7 class=0
    span a tokens=1 limit=2 rows=7 samples
    state ready=1
    plan limit=2 rows=100 missing=0 class=0
    span a tokens=1 drafts=2 limit=2 rows=3 samples
  )"));
}

TEST(DraftLedger, FewerRowsThanNeededBringASequenceFurtherButNoDrafts) {
  EXPECT_EQ("", run(config_of({kHead}), R"(
    submit a prompt=10 max=60 drafts=2
    plan
    span a tokens=10 samples first
    plan limit=2 rows=7
    span a tokens=1 rows=7 samples
    plan limit=2 rows=7
    span a tokens=1 limit=2 rows=6 samples
    plan limit=2 rows=2
    span a tokens=1 drafts=2 rows=2 samples
    state ready=0
    plan limit=2 rows=7
    span a tokens=1 limit=2 rows=3 samples
  )"));
}

TEST(DraftLedger, SequencesThatAreReadyGoFirstThenThoseThatSampleThenChunks) {
  EXPECT_EQ("", run(config_of({kHead}), R"(
    submit a prompt=4 max=60 drafts=2
    submit b prompt=4 max=60 drafts=2 base=300
    plan limit=2 rows=5
    span a tokens=4 limit=2 rows=5 samples first
    span b tokens=4 samples first
    submit c prompt=4 max=60 drafts=2 base=500
    submit d prompt=20 max=60 drafts=2 base=700
    plan limit=2 rows=14
    span a tokens=1 drafts=2 limit=2 rows=3 samples
    span b tokens=1 limit=2 rows=6 samples
    span c tokens=4 limit=2 rows=5 samples first
    span d tokens=8 first
    plan limit=1 rows=100 spans=3
    span a tokens=1 drafts=2 limit=1 rows=3 samples
    span b tokens=1 drafts=2 limit=1 rows=3 samples
    span c tokens=1 drafts=2 limit=1 rows=3 samples
    span d tokens=7
    state passes=1 catch_up=9 drafting=3
  )"));
}

TEST(DraftLedger, PromptsThatCannotPayAreNotCaughtUp) {
  EXPECT_EQ("", run(config_of({kHead}), R"(
    submit a prompt=12 max=16 drafts=2
    submit b prompt=2 max=60 drafts=2 base=300
    plan limit=2 rows=100 class=6
    span a tokens=12 samples first
    span b tokens=2 limit=2 rows=3 samples first
    submit c prompt=12 max=20 drafts=2 base=500
    plan limit=2 rows=100 class=6
    span a tokens=1 samples
    span b tokens=1 drafts=2 limit=2 rows=3 samples
    span c tokens=12 limit=2 rows=13 samples first
  )"));
}

TEST(DraftLedger, APreemptedSequenceStartsAfresh) {
  SchedulerConfig config = config_of({kHead});
  config.max_num_seqs = 1;
  config.prefix_caching = false;
  config.policy = SchedulingPolicy::kPriority;
  EXPECT_EQ("", run(config, R"(
    submit a prompt=4 max=60 drafts=2 priority=1
    plan limit=2 rows=100
    span a tokens=4 limit=2 rows=5 samples first
    done a=1:5
    plan limit=2 rows=100
    span a tokens=1 drafts=2 limit=2 rows=3 samples
    done a=2:2
    submit b prompt=2 max=60 base=300
    plan limit=2 rows=100
    span b tokens=2 samples first
    state preemptions=1
    done b=1!
    plan limit=2 rows=100
    span a tokens=7 limit=2 rows=8 samples first
  )"));
}

TEST(DraftLedger, EachDrafterHasItsOwnGrant) {
  EXPECT_EQ("", run(config_of({kHead, kLookup}), R"(
    submit a prompt=4 max=60 drafts=3
    submit b prompt=4 max=60 drafts=3 drafter=1 base=300
    submit c prompt=4 max=60 base=500
    plan limit=3 rows=100 limit1=1
    span a tokens=4 limit=3 rows=5 samples first
    span b tokens=4 limit=1 samples first
    span c tokens=4 samples first
    state passes=3 catch_up=5 drafting=1 passes1=1 catch_up1=0 drafting1=1
    plan limit1=2
    span a tokens=1 drafts=3 samples
    span b tokens=1 drafts=1 limit=2 samples
    span c tokens=1 samples
    state passes=0 passes1=2 decoding=1 ready=0
  )"));
}

TEST(DraftLedger, WhoWantsNoSpeculationGetsNoRows) {
  EXPECT_EQ("", run(config_of({kHead}), R"(
    submit a prompt=4 max=60
    submit b prompt=6 max=6 pools drafts=2 bypass features=16
    plan limit=3 rows=100
    span a tokens=4 samples first
    span b tokens=6 samples first
    plan limit=3 rows=100
    span a tokens=1 samples
    state passes=0 catch_up=0 decoding=0 coming=0
  )"));
}

TEST(DraftLedger, HitsCountAsExactOnceTheDeviceHasToldSo) {
  EXPECT_EQ("", run(config_of({kHead}), R"(
    submit a prompt=9 max=60 drafts=2
    plan limit=2 rows=100
    span a tokens=9 limit=2 rows=10 samples first
    submit b prompt=9 max=60 drafts=2
    plan limit=2 rows=100
    span a tokens=1 drafts=2 limit=2 rows=3 samples
    span b tokens=1 limit=2 rows=10 hits=8 samples first
    done a=1:10
    done a=1:1 b=1:10
    submit c prompt=9 max=60 drafts=2
    submit d prompt=9 max=60
    plan limit=2 rows=100
    span a tokens=1 drafts=2 limit=2 rows=3 samples
    span b tokens=1 drafts=2 limit=2 rows=3 samples
    span c tokens=1 limit=2 rows=2 hits=8 samples first
    span d tokens=1 hits=8 samples first
  )"));
}

TEST(DraftLedger, ScoredPromptsAreCaughtUpToo) {
  EXPECT_EQ("", run(config_of({kHead}), R"(
    submit a prompt=6 max=60 drafts=2 scores bypass
    plan limit=2 rows=100
    span a tokens=6 limit=2 rows=7 samples first all
    plan limit=2 rows=100
    span a tokens=1 drafts=2 limit=2 rows=3 samples
  )"));
}

TEST(DraftLedger, WithoutBlocksProposalsGoFirstThenDrafts) {
  SchedulerConfig config = config_of({kHead});
  config.num_blocks = 3;
  config.prefix_caching = false;
  EXPECT_EQ("", run(config, R"(
    submit a prompt=5 max=8 drafts=2
    plan limit=2 rows=100
    span a tokens=5 limit=1 rows=6 samples first
    done a=1
    plan limit=2 rows=100
    span a tokens=1 drafts=1 rows=2 samples
    state preemptions=0 free=0
  )"));
  EXPECT_EQ("", run(config, R"(
    submit a prompt=6 max=12 drafts=4
    plan limit=4 rows=100
    span a tokens=6 rows=7 samples first
    state preemptions=0 free=0
  )"));
  EXPECT_EQ("", run(config, R"(
    submit a prompt=3 max=12 drafts=4
    plan limit=4 rows=100
    span a tokens=3 limit=4 rows=4 samples first
    state free=0
    done a=1
    plan limit=4 rows=100
    span a tokens=1 rows=1 samples
    state preemptions=0
  )"));
}

// A block of rows behind the known ids has the same length however many drafts are wanted.
TEST(DraftLedger, BlocksOfRowsNeedTheirRoom) {
  SchedulerConfig config = config_of({{.has_kv = true, .entries_ahead = 5}});
  config.prefix_caching = false;
  for (const auto& [num_blocks, expected] :
       {std::pair(3, "span a tokens=3 rows=4 samples first"),
        std::pair(4, "span a tokens=3 limit=1 rows=4 samples first")}) {
    config.num_blocks = num_blocks;
    EXPECT_EQ("", run(config, std::string(R"(
      submit a prompt=3 max=12 drafts=4
      plan limit=1 rows=100
      )") + expected));
  }
}

TEST(DraftLedger, WhatSequencesCouldUseIsToldByClass) {
  Scheduler scheduler(config_of({kHead}));
  Sequence sequence;
  sequence.tokens.assign(10, 1);
  sequence.prompt_len = 10;
  sequence.max_len = 31;
  sequence.max_draft_tokens = 2;
  BatchDemand demand;
  scheduler.add(sequence);
  scheduler.describe(demand);
  EXPECT_EQ(demand.num_sequences, 1);
  EXPECT_EQ(demand.num_decoding, 0);
  EXPECT_EQ(demand.drafters[0].num_coming, 1);
  StepPlan plan;
  ASSERT_TRUE(scheduler.plan(plan));
  scheduler.describe(demand);
  EXPECT_EQ(demand.num_sequences, 1);
  EXPECT_EQ(demand.num_decoding, 1);
  EXPECT_EQ(demand.drafters[0].num_decoding, 1);
  EXPECT_EQ(demand.drafters[0].num_ready, 0);
  EXPECT_EQ(demand.drafters[0].fewest_missing, 12);
  // Twelve entries for the twenty tokens to come at most: less than one a token.
  EXPECT_EQ(demand.drafters[0].num_resting[4], 1);
  EXPECT_EQ(demand.drafters[0].num_missing[4], 12);
}

// After outputs of one token a sequence counts as short, unless it is known to go on.
TEST(DraftLedger, ALengthThatIsKnownCountsMoreThanOutputsOfLate) {
  const auto class_after_short_ones = [](int min_len) {
    DraftLedger ledger({kHead});
    Sequence ended;
    ended.prompt_len = 10;
    ended.tokens.assign(11, 1);
    for (int i = 0; i < 100; ++i) ledger.note_end(ended);
    Sequence sequence;
    sequence.tokens.assign(64, 1);
    sequence.prompt_len = 64;
    sequence.min_len = min_len;
    sequence.max_len = 64 + 256;
    sequence.max_draft_tokens = 1;
    sequence.caught_up = true;
    BatchDemand demand;
    ledger.describe(sequence, demand);
    const auto& counts = demand.drafters[0].num_resting;
    return std::find(counts.begin(), counts.end(), 1) - counts.begin();
  };
  EXPECT_EQ(class_after_short_ones(0), 11) << "65 entries for a token";
  EXPECT_EQ(class_after_short_ones(64 + 256), 3) << "65 entries for 256 tokens";
}

// A look-up before a draft model: each has its own grant, and what the look-up drafted the model
// lacks.
TEST(DraftLedger, TheDraftersOfAListAreGrantedApart) {
  DraftLedger ledger({kLookup, kDraftModel});
  Sequence sequence;
  sequence.tokens.assign(20, 1);
  sequence.prompt_len = 10;
  sequence.max_len = 100;
  sequence.max_draft_tokens = 8;
  sequence.drafter = 1;
  sequence.lookups = 1;
  sequence.caught_up = sequence.draft_caught_up = true;
  BatchDemand demand;
  ledger.describe(sequence, demand);
  EXPECT_EQ(demand.num_decoding, 1);
  EXPECT_EQ(demand.drafters[0].num_listed, 1);
  EXPECT_EQ(demand.drafters[0].num_decoding, 0);
  EXPECT_EQ(demand.drafters[1].num_decoding, 1);

  const std::vector<DraftGrant> grants = {{.num_draft_tokens = 6},
                                          {.num_draft_tokens = 3, .catch_up_rows = 100}};
  ledger.open(grants);
  EXPECT_EQ(ledger.hoped_limit(sequence), 3);
  EXPECT_EQ(ledger.hoped_lookups(sequence), 6);
  StepPlan plan;
  plan.spans.push_back({.sequence = &sequence,
                        .num_tokens = 1,
                        .max_verified = 4,
                        .samples = true,
                        .num_draft_tokens = 3,
                        .num_lookup_tokens = 6});
  ledger.deal(plan);
  EXPECT_EQ(plan.drafts[0].num_draft_tokens, 6);
  EXPECT_EQ(plan.drafts[0].num_spans, 1);
  EXPECT_EQ(plan.drafts[0].catch_up_rows, 0);
  EXPECT_EQ(plan.drafts[1].num_draft_tokens, 3);
  EXPECT_EQ(plan.drafts[1].catch_up_rows, 5) << "four drafts of the look-up and the id behind them";
  EXPECT_EQ(sequence.draft_bound, 6);

  ledger.open(std::vector<DraftGrant>{{.num_draft_tokens = 6}, {}});
  EXPECT_EQ(ledger.hoped_limit(sequence), 0) << "the model rests";
  EXPECT_EQ(ledger.hoped_lookups(sequence), 6);
}

// A probe of a look-up takes as many sequences as are granted, and the others have no room for it.
TEST(DraftLedger, OnlySomeOfThoseThatLookUpMayBeGranted) {
  DraftLedger ledger({kLookup, kHead});
  std::array<Sequence, 3> sequences;
  StepPlan plan;
  for (Sequence& sequence : sequences) {
    sequence.tokens.assign(20, 1);
    sequence.prompt_len = 10;
    sequence.max_len = 100;
    sequence.max_draft_tokens = 8;
    sequence.drafter = 1;
    sequence.lookups = 1;
    sequence.caught_up = true;
    plan.spans.push_back(
        {.sequence = &sequence, .num_tokens = 1, .samples = true, .num_lookup_tokens = 1});
  }
  ledger.open(std::vector<DraftGrant>{{.num_draft_tokens = 1, .max_lookups = 2}, {}});
  ledger.deal(plan);
  EXPECT_EQ(plan.drafts[0].num_spans, 2);
  EXPECT_EQ(plan.spans[1].num_lookup_tokens, 1);
  EXPECT_EQ(plan.spans[2].num_lookup_tokens, 0);
  EXPECT_EQ(sequences[1].draft_bound, 1);
  EXPECT_EQ(sequences[2].draft_bound, 0);
}

}  // namespace
}  // namespace foretoken
