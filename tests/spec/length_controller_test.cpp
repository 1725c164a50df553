#include "spec/length_controller.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "spec/policy_tables.h"
#include "spec/policy_world.h"
#include "support/time_curve.h"

namespace foretoken {
namespace {

using test::curve;

BatchDemand decoding(int num_ready) {
  BatchDemand demand;
  demand.num_sequences = demand.num_decoding = num_ready;
  demand.drafters[0].num_decoding = demand.drafters[0].num_ready = num_ready;
  return demand;
}

TEST(LengthController, FixedGrantsAllAndOffNothing) {
  const CostTable none;
  LengthController fixed(policy_config(LengthMode::kFixed, 5), none);
  const DraftGrant grant = fixed.decide(0, decoding(3))[0];
  EXPECT_EQ(grant.num_draft_tokens, 5);
  EXPECT_EQ(grant.catch_up_rows, 2048);
  EXPECT_EQ(grant.max_class, kNumCatchUpClasses - 1);
  LengthController off(policy_config(LengthMode::kOff, 5), none);
  EXPECT_EQ(off.decide(0, decoding(3))[0].num_draft_tokens, 0);
  EXPECT_EQ(off.decide(0, decoding(3))[0].catch_up_rows, 0);
}

TEST(LengthController, SchedulesGoByTheNumberOfSequencesAndFillGaps) {
  const CostTable none;
  LengthControllerConfig config = policy_config(LengthMode::kSchedule, 4);
  config.schedule = {{1, 2, 9}, {3, 4, 3}, {8, 16, 0}, {20, 30, 2}};
  LengthController policy(config, none);
  const std::vector<std::pair<int, int>> wanted = {{0, 4}, {1, 4},  {2, 4},  {3, 3},   {7, 3},
                                                   {8, 0}, {19, 0}, {20, 2}, {1000, 2}};
  for (const auto& [batch, limit] : wanted) {
    const DraftGrant grant = policy.decide(0, decoding(batch))[0];
    EXPECT_EQ(grant.num_draft_tokens, limit) << batch;
    EXPECT_EQ(grant.catch_up_rows, limit > 0 ? 2048 : 0) << batch;
  }
}

TEST(LengthController, ResultsAreLookedAtTwoStepsLater) {
  const CostTable times = cpu_times();
  LengthControllerConfig config = policy_config(LengthMode::kAdaptive, 3);
  config.steps_in_flight = 1;
  LengthController policy(config, times);
  for (uint64_t step = 0; step < 60; ++step) {
    const int limit = policy.decide(step, decoding(1))[0].num_draft_tokens;
    // As if all of a hundred sequences of step 9 had been refused.
    EXPECT_EQ(limit > 0, step < 11) << step;
    policy.planned(step, {1, 1 + limit, 0, {DraftUse{limit, limit + 1, limit > 0 ? 1 : 0}}});
    for (int i = 0; i < (step == 9 ? 100 : 1) && limit > 0; ++i) {
      policy.observe(step, 0, limit, limit, step == 9 ? 0 : limit);
    }
    (void)policy.decide(step, decoding(1));
  }
}

using Kind = LengthController::Kind;

// Others' results tell nothing about a prediction, nor those of the last one about the next.
TEST(LengthController, PredictionsAreDecidedAboutByThemselves) {
  const CostTable times = cpu_times();
  LengthController policy(policy_config(LengthMode::kAdaptive, 4), times);
  uint64_t step = 0;
  const auto run = [&](const BatchDemand& demand, bool predicted, bool accepts) {
    const int limit = policy.decide(step, demand)[0].num_draft_tokens;
    policy.planned(step, {1, 1 + limit, 0, {DraftUse{limit, 0, limit > 0 ? 1 : 0}}});
    const auto kind = static_cast<LengthController::Kind>(predicted ? 1 : 0);
    if (limit > 0) policy.observe(step, 0, limit, limit, accepts ? limit : 0, kind);
    ++step;
    return limit;
  };
  BatchDemand with;
  with.num_sequences = with.num_decoding = with.drafters[0].num_predicted = 1;
  for (int i = 0; i < 200; ++i) run(decoding(1), false, false);
  EXPECT_EQ(run(decoding(1), false, false), 0);
  EXPECT_GT(run(with, true, true), 0);
  for (int i = 0; i < 50; ++i) run(with, true, true);
  EXPECT_EQ(run(with, true, true), 4);
  int drafted = 0;
  for (int i = 0; i < 300; ++i) {
    const int limit = run(with, true, false);
    if (i >= 172) drafted += limit;
  }
  EXPECT_GE(drafted, 1) << "one that fits again must be noticed";
  EXPECT_LE(drafted, 4);
  run(decoding(1), false, false);
  EXPECT_GT(run(with, true, true), 1) << "another request's prediction";
}

// The same results give the same limits, whether one or two steps are in flight.
TEST(LengthController, OneAndTwoStepsInFlightDecideAlike) {
  const CostTable times = cpu_times();
  std::vector<std::vector<int>> limits(2);
  for (int in_flight = 1; in_flight <= 2; ++in_flight) {
    LengthControllerConfig config = policy_config(LengthMode::kAdaptive, 5);
    config.steps_in_flight = in_flight;
    PolicyWorld world(times, config,
                      {.batch = 3,
                       .num_requests = 3,
                       .prompt_len = 20,
                       .output_len = 900,
                       .acceptance = [](int, int position) { return .8 - .1 * position; }});
    limits[static_cast<size_t>(in_flight - 1)] = world.run().limits;
  }
  for (auto& each : limits) each.resize(200);
  EXPECT_EQ(limits[0], limits[1]);
}

TEST(LengthController, NothingIsGrantedWhereNobodyCanDraft) {
  const CostTable times = cpu_times();
  LengthController policy(policy_config(LengthMode::kAdaptive, 3), times);
  const DraftGrant grant = policy.decide(0, BatchDemand{})[0];
  EXPECT_EQ(grant.num_draft_tokens, 0);
  EXPECT_EQ(grant.catch_up_rows, 0);
}

// While the drafter rests: at most one probe in 64 steps, one draft, the fewest missing entries,
// and not before the budget has it.
TEST(LengthController, ProbesAreRareSmallAndPaidFor) {
  const CostTable times = cpu_times();
  LengthController policy(policy_config(LengthMode::kAdaptive, 3), times);
  BatchDemand demand = decoding(1);
  uint64_t last_probe = 0;
  int num_probes = 0;
  int64_t probe_ns = 0;
  int64_t all_ns = 0;
  int missing = 0;
  constexpr uint64_t kSteps = 5000;
  for (uint64_t step = 0; step < kSteps; ++step) {
    const DraftGrant grant = policy.decide(step, demand)[0];
    const bool rests = grant.max_class < 0;
    DraftUse use;
    if (grant.num_draft_tokens > 0) use = {grant.num_draft_tokens, grant.num_draft_tokens + 1, 1};
    if (grant.num_draft_tokens > 0 && rests) {
      EXPECT_TRUE(num_probes == 0 || step >= last_probe + 64) << step;
      ++num_probes;
      last_probe = step;
      EXPECT_EQ(grant.num_draft_tokens, 1);
      EXPECT_EQ(grant.max_spans, 1);
      EXPECT_EQ(grant.max_missing, missing);
      use.catch_up_rows = std::max(2, missing);
      EXPECT_LE(use.catch_up_rows, grant.catch_up_rows);
      probe_ns += times.draft_ns(0, use) + times.target.at(2) - times.target.at(1);
    }
    all_ns += times.target.at(1 + use.num_draft_tokens);
    policy.planned(step, {1, 1 + use.num_draft_tokens, 0, {use}});
    if (use.num_draft_tokens > 0)
      policy.observe(step, 0, use.num_draft_tokens, use.num_draft_tokens, 0);
    missing = use.num_draft_tokens > 0 ? 0 : missing + 1;
    demand.drafters[0].num_ready = missing == 0 ? 1 : 0;
    demand.drafters[0].fewest_missing = missing;
    // Class 12: nobody would catch it up for its own sake.
    demand.drafters[0].num_resting[12] = missing == 0 ? 0 : 1;
    demand.drafters[0].num_missing[12] = missing;
  }
  EXPECT_GT(num_probes, 20);
  EXPECT_LE(probe_ns * 100, all_ns);
}

// As many of the sequences that lag as the rows of a step catch up, of one in 16.
TEST(LengthController, AProbeTakesAsManySequencesAsFit) {
  const auto spans_with = [](int max_catch_up_rows) {
    const CostTable times = gpu_times();
    LengthControllerConfig config = policy_config(LengthMode::kAdaptive, 3);
    config.drafters[0].max_catch_up_rows = max_catch_up_rows;
    LengthController policy(config, times);
    BatchDemand demand = decoding(64);
    demand.drafters[0].num_ready = 0;
    demand.drafters[0].num_resting[12] = 64;
    demand.drafters[0].num_missing[12] = 64 * 100;
    demand.drafters[0].fewest_missing = 100;
    int spans = 0;
    for (uint64_t step = 0; step < 200; ++step) {  // in which the budget grows
      const DraftGrant grant = policy.decide(step, demand)[0];
      spans = grant.num_draft_tokens > 0 && grant.max_class < 0 ? grant.max_spans : 0;
      policy.planned(step, {64, 64, 0, {}});
    }
    return spans;
  };
  EXPECT_EQ(spans_with(2048), 5) << "150 rows each";
  EXPECT_EQ(spans_with(700), 2);
  EXPECT_EQ(spans_with(200), 1);
  EXPECT_EQ(spans_with(50), 0);
}

// Where nothing is known, several sequences find out at once, and go on until that is enough.
TEST(LengthController, SomeSequencesLearnForAll) {
  const auto spans_with = [](int num_decoding, int missing) {
    const CostTable times = gpu_times();
    LengthController policy(policy_config(LengthMode::kAdaptive, 3), times);
    BatchDemand demand = decoding(num_decoding);
    demand.drafters[0].num_ready = 0;
    demand.drafters[0].num_resting[8] = num_decoding;
    demand.drafters[0].num_missing[8] = int64_t{num_decoding} * missing;
    demand.drafters[0].fewest_missing = missing;
    const DraftGrant first = policy.decide(0, demand)[0];
    if (first.num_draft_tokens == 0) return 0;
    policy.planned(0, {num_decoding, num_decoding, 0, {DraftUse{1, missing, first.max_spans}}});
    demand.drafters[0].num_ready = first.max_spans;
    demand.drafters[0].num_resting[8] -= first.max_spans;
    const DraftGrant second = policy.decide(1, demand)[0];
    EXPECT_GE(second.max_spans, first.max_spans) << "nobody was caught up for one step";
    return first.max_spans;
  };
  EXPECT_EQ(spans_with(64, 100), 4) << "one in 16";
  EXPECT_EQ(spans_with(96, 300), 4) << "a step catches up no more";
  EXPECT_EQ(spans_with(96, 10), 6);
}

// What was not tried for long looks a little worse than what is: two drafts would pay here if the
// second were as good as the first, and lose with less than 0.97 of that.
TEST(LengthController, WhatIsNotTriedIsNotTakenForAsGood) {
  CostTable times;
  times.target = test::curve({{1, 10000000}, {2, 10000000}, {3, 14850000}});
  times.drafters = {{.name = "ngram", .catch_up = {}, .pass = test::curve({{1, 10}, {2, 10}})}};
  LengthControllerConfig config = policy_config(LengthMode::kAdaptive, 2);
  config.drafters[0] = {.max_draft_tokens = 2, .looks_up = true};
  LengthController policy(config, times);
  int most = 0;
  for (uint64_t step = 0; step < 4000; ++step) {
    const int limit = policy.decide(step, decoding(1))[0].num_draft_tokens;
    policy.planned(step, {1, 1 + limit, 0, {DraftUse{limit, 0, limit > 0 ? 1 : 0}}});
    if (limit > 0) policy.observe(step, 0, limit, 1, 1);
    most = std::max(most, limit);
  }
  EXPECT_EQ(most, 1);
}

// Bursts of short and of long outputs in turns, on a device whose times the table tells. What is
// known of a length counts from the first prompt on; what was seen of late misleads.
TEST(LengthController, KnownLengthsPayForPromptsFromTheStart) {
  const auto seconds = [](LengthMode mode, bool known) {
    const CostTable times = gpu_times();
    PolicyWorld world(times, policy_config(mode, 3),
                      {.batch = 64,
                       .num_requests = 256,
                       .prompt_len = 128,
                       .max_num_batched_tokens = 2048,
                       .length = [](int index) { return index / 64 % 2 == 0 ? 16 : 272; },
                       .runs_to_the_end = known,
                       .acceptance = [](int, int position) { return .8 - .05 * position; }});
    return static_cast<double>(world.run().ns) / 1e9;
  };
  const double known = seconds(LengthMode::kAdaptive, true);
  EXPECT_LT(known, 0.98 * seconds(LengthMode::kAdaptive, false));
  EXPECT_LT(known, 1.04 * seconds(LengthMode::kFixed, false));
  EXPECT_LT(known, seconds(LengthMode::kOff, false));
}

TEST(LengthController, SequencesOfOtherDraftersCountAsLoad) {
  // Rows beyond eight are dear: with the other's drafts there is no room for any.
  CostTable times;
  times.target = curve({{8, 10000000}, {16, 40000000}});
  times.drafters = {{.name = "a", .one_pass = true, .catch_up = {}, .pass = curve({{1, 1000}})},
                    {.name = "b", .one_pass = true, .catch_up = {}, .pass = curve({{1, 1000}})}};
  LengthControllerConfig config = policy_config(LengthMode::kAdaptive, 3);
  config.drafters.assign(2, {.max_draft_tokens = 3, .looks_up = true});
  BatchDemand demand = decoding(2);
  {
    LengthController alone(config, times);
    EXPECT_EQ(alone.decide(0, demand)[0].num_draft_tokens, 3);
  }
  demand.num_decoding = demand.num_sequences = 8;
  demand.drafters[1].num_decoding = demand.drafters[1].num_ready = 6;
  LengthController both(config, times);
  EXPECT_EQ(both.decide(0, demand)[0].num_draft_tokens, 0);
  EXPECT_EQ(both.decide(0, demand)[1].num_draft_tokens, 0);
}

TEST(LengthController, BesideFullPromptChunksRowsAreNotFree) {
  const CostTable times = gpu_times();
  LengthController policy(policy_config(LengthMode::kAdaptive, 3), times);
  const BatchDemand demand = decoding(64);
  uint64_t step = 0;
  const auto run = [&](int num_prompt_rows) {
    for (int i = 0; i < 40; ++i, ++step) {
      const int limit = policy.decide(step, demand)[0].num_draft_tokens;
      policy.planned(step, {64,
                            64 * (1 + limit) + num_prompt_rows,
                            num_prompt_rows,
                            {DraftUse{limit, 64 * (limit + 1), limit > 0 ? 64 : 0}}});
      for (int n = 0; n < 64 && limit > 0; ++n) {
        policy.observe(step, 0, limit, limit, n % 2 == 0 ? limit : 0);
      }
    }
    return policy.decide(step, demand)[0].num_draft_tokens;
  };
  EXPECT_GT(run(0), 0);
  EXPECT_EQ(run(1500), 0);
  EXPECT_GT(run(0), 0);
}

// Where few sequences have drafts, the room that all are given costs more than those drafts bring.
TEST(LengthController, RoomForDraftsCountsWhereTheTableSaysSo) {
  const auto limit_with = [](const CostTable& times, int num_drafted) {
    LengthController policy(policy_config(LengthMode::kAdaptive, 3), times);
    int limit = 0;
    for (uint64_t step = 0; step < 200; ++step) {
      limit = policy.decide(step, decoding(64))[0].num_draft_tokens;
      policy.planned(
          step, {64, 64 * (1 + limit), 0, {DraftUse{limit, 64 * (limit + 1), limit > 0 ? 64 : 0}}});
      for (int i = 0; i < 64 && limit > 0; ++i) {
        const int drafted = i < num_drafted ? limit : 0;
        policy.observe(step, 0, limit, drafted, std::min(drafted, i % 3 == 0 ? 1 : 3));
      }
      if (limit == 0) break;
    }
    return limit;
  };
  EXPECT_EQ(limit_with(tiled_times(), 64), 3);
  EXPECT_EQ(limit_with(tiled_times(), 8), 0);
}

struct Case {
  const char* name;
  CostTable times;
  int batch;
  int prompt_len;
  std::function<double(int, int)> acceptance;
  bool changes = false;  // no fixed length to compare with
  int drafting = 8;
};

PolicyWorld::Totals simulate(const Case& one, LengthMode mode, int num_draft_tokens) {
  PolicyWorld world(one.times, policy_config(mode, num_draft_tokens),
                    {.batch = one.batch,
                     .num_requests = std::max(8, one.batch * 3),
                     .prompt_len = one.prompt_len,
                     .output_len = 400,
                     .acceptance = one.acceptance,
                     .drafting = one.drafting});
  return world.run();
}

std::vector<Case> cases() {
  const auto always = [](double chance) { return [chance](int, int) { return chance; }; };
  std::vector<Case> all;
  for (const int batch : {1, 4, 16, 64, 256}) {
    const CostTable times = batch < 16 ? cpu_times() : gpu_times();
    for (const double chance : {0.0, 0.3, 0.6, 0.9}) {
      if (batch == 256 && chance == 0.3) continue;
      all.push_back({"constant", times, batch, 64, always(chance)});
    }
  }
  all.push_back({"falls with the position", gpu_times(), 4, 64,
                 [](int, int position) { return .8 - .15 * position; }});
  all.push_back({"long prompts", gpu_times(), 16, 800, always(0.6)});
  for (const int batch : {1, 4, 16}) {
    const CostTable times = batch == 1 ? cpu_times() : gpu_times();
    all.push_back({"becomes bad", times, batch, 64,
                   [](int percent, int) { return percent < 50 ? .9 : 0.; }, true});
    all.push_back({"becomes good", times, batch, 64,
                   [](int percent, int) { return percent < 50 ? 0. : .9; }, true});
  }
  for (const int batch : {1, 16, 64, 256}) {
    all.push_back(
        {"tiled", tiled_times(), batch, 64, [](int, int position) { return .8 - .2 * position; }});
    if (batch == 16) continue;
    for (const int drafting : {0, 1, 4}) {
      all.push_back({"tiled, partly", tiled_times(), batch, 64, always(0.9), true, drafting});
    }
  }
  for (const int batch : {1, 4, 16, 64, 256}) {
    for (const double chance : {0.4, 0.6, 0.8}) {
      if (batch >= 64 && chance != 0.6) continue;
      all.push_back({"mixture", mixture_times(), batch, 64, always(chance)});
    }
  }
  for (const int batch : {1, 16}) {
    all.push_back({"mixture, partly", mixture_times(), batch, 64, always(0.8), true, 4});
  }
  // The device drafts for few sequences, or for none.
  for (const int batch : {1, 8, 64}) {
    const CostTable times = batch < 16 ? cpu_times() : gpu_times();
    for (const int drafting : {0, 1, 4}) {
      all.push_back({"partly", times, batch, 64, always(0.9), true, drafting});
    }
  }
  return all;
}

TEST(LengthController, AdaptiveIsNeverBelowOffAndCloseToTheBestFixedLength) {
  constexpr int kMax = 3;
  for (const Case& one : cases()) {
    const double off = simulate(one, LengthMode::kOff, kMax).tokens_per_second();
    double best = 0;
    for (int drafts = 1; drafts <= kMax; ++drafts) {
      best = std::max(best, simulate(one, LengthMode::kFixed, drafts).tokens_per_second());
    }
    const PolicyWorld::Totals totals = simulate(one, LengthMode::kAdaptive, kMax);
    const double adaptive = totals.tokens_per_second();
    const std::string name = std::string(one.name) + ", batch " + std::to_string(one.batch) +
                             ", drafting " + std::to_string(one.drafting) + ", adaptive/off " +
                             std::to_string(adaptive / off) + ", best/off " +
                             std::to_string(best / off);
    EXPECT_GE(adaptive, 0.98 * off) << name;
    EXPECT_TRUE(one.changes || adaptive >= 0.95 * best) << name;
  }
}

// One sequence's drafts touch experts of their own, which a mixture's step is nearly all made of;
// those of 16 find theirs touched already.
TEST(LengthController, AMixtureIsDraftedForWhereRowsShareItsExperts) {
  // How often each limit was granted once 60 % of drafts were seen to be accepted.
  const auto count_limits = [](int batch) {
    const CostTable times = mixture_times();
    LengthController policy(policy_config(LengthMode::kAdaptive, 3), times);
    std::array<int, 4> counts{};
    double place = 0;
    for (uint64_t step = 0; step < 900; ++step) {
      const int limit = policy.decide(step, decoding(batch))[0].num_draft_tokens;
      const DraftUse use{limit, batch * (limit + 1), limit > 0 ? batch : 0};
      policy.planned(step, {batch, batch * (1 + limit), 0, {use}});
      for (int i = 0; i < batch && limit > 0; ++i) {
        place = std::fmod(place + 0.6180339887, 1);
        const int accepted = (place < 0.6 ? 1 : 0) + (place < 0.36 ? 1 : 0) + (place < 0.216);
        policy.observe(step, 0, limit, limit, std::min(limit, accepted));
      }
      if (step >= 300) ++counts[static_cast<size_t>(limit)];
    }
    return counts;
  };
  EXPECT_GE(count_limits(1)[0], 588) << "all but the probes";
  for (const int batch : {16, 64, 256}) EXPECT_EQ(count_limits(batch)[3], 600) << batch;
}

// A drafter that was useless and becomes good is noticed, and the other way round.
TEST(LengthController, ARestingDrafterWakesUpAndAUselessOneIsPutToRest) {
  const auto mean = [](std::span<const int> limits) {
    double sum = 0;
    for (const int limit : limits) sum += limit;
    return sum / static_cast<double>(limits.size());
  };
  for (const auto& times : {cpu_times(), gpu_times()}) {
    Case one{"becomes good",
             times,
             1,
             16,
             [](int percent, int) { return percent < 30 ? 0. : .9; },
             true};
    std::vector<int> limits = simulate(one, LengthMode::kAdaptive, 3).limits;
    EXPECT_LT(mean(std::span(limits).subspan(50, 500)), 0.1);
    EXPECT_GT(mean(std::span(limits).last(100)), 2.5);
    one.acceptance = [](int percent, int) { return percent < 70 ? .9 : 0.; };
    limits = simulate(one, LengthMode::kAdaptive, 3).limits;
    EXPECT_GT(mean(std::span(limits).first(300)), 2.5);
    EXPECT_LT(mean(std::span(limits).last(500)), 0.1);
  }
}

// Requests end before 64 steps have passed, and at each start the drafter wakes up for prompts that
// then do not pay: it is probed all the same.
TEST(LengthController, ShortRequestsDoNotKeepProbesAway) {
  const CostTable times = cpu_times();
  LengthController policy(policy_config(LengthMode::kAdaptive, 3), times);
  uint64_t step = 0;
  int num_wakes = 0;
  int num_probes = 0;
  for (int request = 0; request < 400; ++request) {
    for (int i = 0; i < 40; ++i, ++step) {
      BatchDemand demand;
      demand.num_sequences = 1;
      demand.num_decoding = i > 0 ? 1 : 0;
      DraftDemand& own = demand.drafters[0];
      own.num_coming = 1 - demand.num_decoding;
      own.num_decoding = demand.num_decoding;
      own.fewest_missing = i > 0 ? 30 + i : 0;
      own.num_resting[kNumCatchUpClasses - 1] = demand.num_decoding;
      own.num_missing[kNumCatchUpClasses - 1] = own.fewest_missing;
      const DraftGrant grant = policy.decide(step, demand)[0];
      const bool probes =
          grant.num_draft_tokens > 0 && i > 0 && grant.max_missing >= own.fewest_missing;
      num_wakes += grant.num_draft_tokens > 0 && i == 0 ? 1 : 0;
      num_probes += probes ? 1 : 0;
      DraftUse use;
      if (probes) use = {1, own.fewest_missing, 1};
      policy.planned(step, {1, 1 + use.num_draft_tokens, 0, {use}});
      // Good enough to wake up for prompts.
      if (probes) policy.observe(step, 0, 1, 1, num_probes % 8 > 0 ? 1 : 0);
    }
  }
  EXPECT_GT(num_wakes, 100);
  EXPECT_GT(num_probes, 60);
}

}  // namespace
}  // namespace foretoken
