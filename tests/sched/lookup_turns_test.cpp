#include <gtest/gtest.h>

#include "sched/draft_ledger.h"

namespace foretoken {
namespace {

// Room costs all of a batch: a sequence whose text does not repeat itself has some now and then.
TEST(LookupTurns, WhatALookUpBringsNothingHasATurnNowAndThen) {
  DraftLedger ledger({SchedulerDrafter{}});
  Sequence sequence;
  sequence.tokens.assign(20, 1);
  sequence.prompt_len = 10;
  sequence.max_len = 100;
  sequence.max_draft_tokens = 8;
  sequence.caught_up = true;
  const std::vector<DraftGrant> grants = {{.num_draft_tokens = 4, .min_gain = LookupGain::kOne}};
  const Span span{.sequence = &sequence, .num_tokens = 1, .max_verified = 4, .had_lookups = true};
  const auto turns = [&](int steps) {
    int count = 0;
    for (int step = 0; step < steps; ++step) {
      BatchDemand demand;
      ledger.describe(sequence, demand);
      EXPECT_EQ(demand.num_decoding, 1);
      ledger.open(grants);
      const int granted = ledger.hoped_limit(sequence);
      EXPECT_EQ(demand.drafters[0].num_decoding, granted > 0 ? 1 : 0) << "it is told beforehand";
      StepPlan plan;
      plan.spans.push_back(
          {.sequence = &sequence, .num_tokens = 1, .samples = true, .num_draft_tokens = granted});
      ledger.deal(plan);
      EXPECT_EQ(sequence.lookup_bound, granted);
      if (granted > 0) ++count;
    }
    return count;
  };
  ledger.open(grants);
  EXPECT_EQ(turns(32), 32) << "of a new one nothing is known";
  for (int i = 0; i < 16; ++i) ledger.note_lookups(span, 0, false);
  EXPECT_EQ(turns(32), 32 / LookupGain::kTurn);
  ledger.note_lookups(span, 0, true);
  EXPECT_EQ(turns(32), 32 / LookupGain::kLikelyTurn) << "a long piece of text is known";
  ledger.note_lookups(span, 4, false);
  EXPECT_EQ(turns(32), 32) << "it repeats itself";
}

}  // namespace
}  // namespace foretoken
