#include <gtest/gtest.h>

#include <algorithm>

#include "spec/length_controller.h"
#include "spec/policy_tables.h"
#include "support/time_curve.h"

namespace foretoken {
namespace {

using test::curve;

// A look-up before a head is judged by its own drafts, and the head by those of the steps in which
// it had its turn.
TEST(ListedLimits, DraftersOfAListAreDecidedAboutApart) {
  CostTable times = cpu_times();
  times.drafters.push_back(times.drafters.front());
  LengthControllerConfig config = policy_config(LengthMode::kAdaptive, 4);
  config.drafters.push_back(config.drafters.front());
  LengthController policy(config, times);
  BatchDemand demand;
  demand.num_sequences = demand.num_decoding = 1;
  demand.drafters[1].num_decoding = demand.drafters[1].num_ready = 1;
  demand.drafters[0].num_listed = 1;
  int lookup = 0, head = 0;
  for (uint64_t step = 0; step < 300; ++step) {
    const auto grants = policy.decide(step, demand);
    lookup = grants[0].num_draft_tokens;
    head = grants[1].num_draft_tokens;
    const int most = std::max(lookup, head);
    policy.planned(step, {1, 1 + most, 0, {DraftUse{lookup, 0, 1}, DraftUse{head, 0, 1}}});
    if (most == 0) continue;
    const bool looked_up = step % 2 == 0;
    policy.observe(step, 1, most, looked_up ? 0 : head, 0);
    policy.observe(step, 0, most, looked_up ? lookup : 0, looked_up ? lookup : 0,
                   LengthController::Kind::kListed);
  }
  EXPECT_EQ(lookup, 4);
  EXPECT_LE(head, 1) << "its drafts were all refused";
}

// Room for a draft each costs all of a large batch: a few sequences tell whether a resting look-up
// finds something again.
TEST(ListedLimits, ARestingLookupIsProbedForAFewSequences) {
  CostTable times = gpu_times();
  times.drafters[0] = {
      .name = "suffix", .one_pass = true, .catch_up = {}, .pass = curve({{1, 30000}})};
  LengthControllerConfig config = policy_config(LengthMode::kAdaptive, 8);
  config.drafters[0].looks_up = true;
  config.drafters[0].has_kv = false;
  LengthController policy(config, times);
  BatchDemand demand;
  demand.num_sequences = demand.num_decoding = 64;
  demand.drafters[0].num_listed = 64;
  int num_probes = 0;
  for (uint64_t step = 0; step < 400; ++step) {
    const DraftGrant grant = policy.decide(step, demand)[0];
    const int spans = grant.num_draft_tokens > 0 ? std::min(grant.max_lookups, 64) : 0;
    const int rows = 64 + spans * grant.num_draft_tokens;
    policy.planned(step, {64, rows, 0, {DraftUse{grant.num_draft_tokens, 0, spans}}});
    for (int i = 0; i < spans; ++i) {
      policy.observe(step, 0, grant.num_draft_tokens, grant.num_draft_tokens, 0,
                     LengthController::Kind::kListed);
    }
    if (step < 80 || spans == 0) continue;
    ++num_probes;
    EXPECT_EQ(grant.num_draft_tokens, 1) << step;
    EXPECT_LE(spans, 5) << step;
  }
  EXPECT_GE(num_probes, 4);
  EXPECT_LE(num_probes, 5);
}

// A look-up that rests, by itself or before a head, is woken when it found a long piece of text, as
// soon as results count.
TEST(ListedLimits, WhatWasFoundEndsARest) {
  CostTable times = cpu_times();
  times.drafters[0].one_pass = true;
  times.drafters[0].catch_up = {};
  LengthControllerConfig config = policy_config(LengthMode::kAdaptive, 4);
  config.drafters[0].looks_up = true;
  config.drafters[0].has_kv = false;
  for (const auto kind : {LengthController::Kind::kOwn, LengthController::Kind::kListed}) {
    LengthController policy(config, times);
    BatchDemand demand;
    demand.num_sequences = demand.num_decoding = 1;
    DraftDemand& own = demand.drafters[0];
    (kind == LengthController::Kind::kOwn ? own.num_ready : own.num_listed) = 1;
    own.num_decoding = own.num_ready;
    const auto run = [&](uint64_t step) {
      const int limit = policy.decide(step, demand)[0].num_draft_tokens;
      policy.planned(step, {1, 1 + limit, 0, {DraftUse{limit, 0, 1}}});
      policy.observe(step, 0, limit, limit, 0, kind);
      return limit;
    };
    uint64_t step = 0;
    for (; step < 140; ++step) EXPECT_LE(run(step), step < 70 ? 4 : 1) << "at rest it is probed";
    policy.found(step - 1, 0, kind);
    EXPECT_LE(run(step), 1) << "results of the last two steps are not looked at";
    EXPECT_GT(run(step + 1), 1);
  }
}

}  // namespace
}  // namespace foretoken
