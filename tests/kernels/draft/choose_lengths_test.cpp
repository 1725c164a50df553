#include "kernels/draft/choose_lengths.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "kernels/draft/draft_slots.h"
#include "support/step_data.h"
#include "support/thinning.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

class ChooseLengthsTest : public StepTest {
 protected:
  // A slot that sampled in this step, after its commit.
  static void add_slot(StepData& d, int slot, int num_draft_tokens, uint16_t rate = 0) {
    d.set_sequence(slot, Ids(6, 1), 5);
    d.add_span(slot, 1, kMaxDraftTokens, num_draft_tokens, 1);
    SpanState& span = d.span_states[d.spans.size() - 1];
    span = SpanState{slot, 0, 1, 0, 1, 0, 0};
    d.slots[slot].draft.num_rated = 10;
    std::fill_n(d.slots[slot].draft.rates, kMaxDraftTokens, rate);
    d.slots[slot].draft.num_draft_tokens = -7;
  }
  static void set_result(StepData& d, int span, int drafted, int accepted, int committed) {
    d.results[span].slot = d.spans[span].slot;
    d.results[span].num_drafted = drafted;
    d.results[span].num_accepted = accepted;
    d.results[span].num_committed = committed;
  }
  void run(StepData& d, const ChooseLengthsArgs& args) {
    choose_lengths(queue(), args);
    pull(d);
  }
  void run(StepData& d, const std::vector<int32_t>& row_ns, int draft_ns, int drafter = 0) {
    push(d);
    ChooseLengthsArgs args = choose_lengths_args(drafter);
    args.row_ns = to_device(row_ns);
    args.num_row_ns = static_cast<int32_t>(row_ns.size());
    args.draft_ns = draft_ns;
    run(d, args);
  }
  void run_fixed(StepData& d, int drafter = 0, int draft_max_len = INT32_MAX) {
    push(d);
    ChooseLengthsArgs args = choose_lengths_args(drafter);
    args.draft_max_len = draft_max_len;
    run(d, args);
  }
  static StepSizes many_spans(int count) {
    StepSizes sizes;
    sizes.num_slots = count;
    sizes.limits.max_spans = sizes.result_limits.max_spans = count;
    return sizes;
  }
};

TEST_F(ChooseLengthsTest, FixedGivesTheMostThatASlotCanUse) {
  StepData d{many_spans(8)};
  for (int s = 0; s < 8; ++s) add_slot(d, s, 4);
  d.params[1].max_draft_tokens = 2;
  d.params[2].max_draft_tokens = 0;
  d.params[3].max_len = 8;
  d.slots[4].finished = static_cast<int32_t>(DeviceFinish::kStop);
  d.span_states[5].num_logits = d.span_states[5].num_scored = 3;
  d.spans[6].num_draft_tokens = 0;
  d.params[7].drafter = 1;
  run_fixed(d);
  Ids wanted;
  for (int s = 0; s < 8; ++s) wanted.push_back(d.slots[s].draft.num_draft_tokens);
  EXPECT_EQ(wanted, (Ids{4, 2, 0, 1, 0, 0, 0, -7}));
}

TEST_F(ChooseLengthsTest, ADrafterOfShorterSequencesStopsThere) {
  for (const auto& [draft_max_len, want] :
       {std::pair{20, 4}, {9, 4}, {8, 3}, {6, 1}, {5, 0}, {1, 0}}) {
    StepData d{StepSizes{}};
    add_slot(d, 0, 4);
    run_fixed(d, 0, draft_max_len);
    EXPECT_EQ(d.slots[0].draft.num_draft_tokens, want) << draft_max_len;
  }
}

TEST_F(ChooseLengthsTest, RatesAndThePriorTakeInTheResults) {
  std::mt19937 random(2);
  for (int round = 0; round < 30; ++round) {
    StepData d{many_spans(12)};
    for (int s = 0; s < 12; ++s) {
      add_slot(d, s, 3);
      DraftState& draft = d.slots[s].draft;
      draft.num_rated = static_cast<int32_t>(random() % 40);
      for (uint16_t& rate : draft.rates) rate = static_cast<uint16_t>(random());
      d.params[s].drafter = static_cast<int32_t>(random() % 2);
      const int drafted = static_cast<int>(random() % (kMaxDraftTokens + 1));
      const int accepted = static_cast<int>(random() % (drafted + 1));
      set_result(d, s, drafted, accepted, accepted + static_cast<int>(random() % 4 > 0));
    }
    DraftRates& prior = d.priors[1];
    prior.since_draft = static_cast<int32_t>(random() % 60);
    prior.num_rated = round % 3 == 0 ? 0 : round * 5;
    for (uint16_t& rate : prior.rates) rate = static_cast<uint16_t>(random());

    std::vector<SlotState> want = d.slots;
    spec::StepVerifications step{};
    step.first_unseen = kMaxDraftTokens;
    for (int s = 0; s < 12; ++s) {
      if (d.params[s].drafter != 1) continue;
      DraftState& draft = want[s].draft;
      if (draft.num_rated == 0) spec::start_rates(draft, prior);
      const SpanResult& r = d.results[s];
      step.committed += r.num_committed;
      if (r.num_drafted == 0) continue;
      spec::rate_sequence(draft, outcome_of(r));
      for (int i = 0; i < r.num_accepted; ++i) ++step.accepted[i];
      if (r.num_accepted < r.num_drafted && r.num_committed > r.num_accepted) {
        ++step.rejected[r.num_accepted];
      }
      if (r.num_accepted == r.num_drafted) {
        step.first_unseen = std::min(step.first_unseen, r.num_drafted);
      }
      ++step.count;
    }
    const DraftRates other = d.priors[0];
    DraftRates want_prior = prior;
    spec::rate_prior(want_prior, step);
    run_fixed(d, 1);
    EXPECT_EQ(std::memcmp(&d.priors[1], &want_prior, sizeof want_prior), 0) << round;
    EXPECT_EQ(std::memcmp(&d.priors[0], &other, sizeof other), 0) << "another drafter's";
    for (size_t s = 0; s < want.size(); ++s) {
      const DraftState &got = d.slots[s].draft, &expected = want[s].draft;
      ASSERT_EQ(got.num_rated, expected.num_rated) << "round " << round << " slot " << s;
      ASSERT_TRUE(std::equal(got.rates, got.rates + kMaxDraftTokens, expected.rates)) << s;
    }
  }
}

TEST_F(ChooseLengthsTest, ANewSlotStartsFromAllOthers) {
  StepData d{StepSizes{}};
  add_slot(d, 0, 3);
  d.slots[0].draft.num_rated = 0;
  DraftRates& prior = d.priors[0];
  prior.num_rated = 1;
  std::fill_n(prior.rates, kMaxDraftTokens, uint16_t{65000});
  StepData hopeless = d;
  std::fill_n(hopeless.priors[0].rates, kMaxDraftTokens, uint16_t{600});
  const std::vector<int32_t> row_ns = {0, 1000, 1300, 1600, 1900};
  run(d, row_ns, 50);
  EXPECT_EQ(d.slots[0].draft.num_draft_tokens, 3);
  EXPECT_EQ(d.slots[0].draft.rates[2], 65000);
  run(hopeless, row_ns, 50);
  EXPECT_EQ(hopeless.slots[0].draft.num_draft_tokens, 0);
}

TEST_F(ChooseLengthsTest, ASlotWithAPredictionLearnsByItself) {
  StepData d{StepSizes{}};
  add_slot(d, 0, 3);
  add_slot(d, 1, 3);
  d.slots[0].draft.num_rated = d.slots[1].draft.num_rated = 0;
  d.set_prediction(0, {1, 2, 3});
  d.priors[0].num_rated = 100;
  std::fill_n(d.priors[0].rates, kMaxDraftTokens, uint16_t{600});
  const DraftRates prior = d.priors[0];
  set_result(d, 0, 2, 2, 3);
  set_result(d, 1, 0, 0, 1);
  run(d, {0, 1000, 1100, 1200, 1300, 1400, 1500, 1600, 1700, 1800}, 50);
  EXPECT_EQ(d.slots[0].draft.num_draft_tokens, 3);
  EXPECT_GT(d.slots[0].draft.rates[0], spec::kFirstRate);
  EXPECT_EQ(d.slots[1].draft.num_draft_tokens, 0);
  EXPECT_EQ(d.priors[0].rates[0], prior.rates[0]);
  EXPECT_EQ(d.priors[0].num_rated, prior.num_rated);
  EXPECT_EQ(d.priors[0].since_draft, prior.since_draft + 1) << "of the other slot's tokens";
}

TEST_F(ChooseLengthsTest, ARestingSlotIsProbed) {
  const std::vector<int32_t> row_ns = {0, 1000, 2000, 3000, 4000, 5000, 6000};  // no draft pays
  for (const auto& [since, want] : {std::pair{63, 0}, {64, 1}, {1000, 1}}) {
    StepData d{StepSizes{}};
    add_slot(d, 0, 3, 9000);
    add_slot(d, 1, 0, 9000);
    add_slot(d, 2, 3, 9000);
    d.params[2].max_draft_tokens = 0;
    for (int s = 0; s < 3; ++s) d.slots[s].draft.since_draft = since;
    run(d, row_ns, 10);
    EXPECT_EQ(d.slots[0].draft.num_draft_tokens, want) << since;
    EXPECT_EQ(d.slots[1].draft.num_draft_tokens, 0) << "none is granted";
    EXPECT_EQ(d.slots[2].draft.num_draft_tokens, 0) << "it opted out";
  }
}

// Where no sequence lives for 64 tokens, the drafter as a whole is probed: one slot a step.
TEST_F(ChooseLengthsTest, ARestingDrafterIsProbed) {
  std::vector<int32_t> row_ns = {0};  // no draft pays
  while (row_ns.size() < 30) row_ns.push_back(row_ns.back() + 1000);
  for (const auto& [since, probed] : {std::pair{63, false}, {64, true}, {1 << 20, true}}) {
    StepData d{many_spans(5)};
    for (int s = 0; s < 5; ++s) {
      add_slot(d, s, s == 0 ? 0 : 3, 9000);
      d.slots[s].draft.since_draft = 20;
    }
    d.slots[2].draft.since_draft = d.slots[3].draft.since_draft = 30;
    d.params[4].drafter = 1;
    d.slots[4].draft.since_draft = 50;
    d.priors[0].since_draft = since;
    d.priors[0].num_rated = 500;
    run(d, row_ns, 10);
    Ids wanted;
    for (int s = 0; s < 5; ++s) wanted.push_back(d.slots[s].draft.num_draft_tokens);
    EXPECT_EQ(wanted, (Ids{0, 0, probed ? 1 : 0, 0, -7})) << since;
    EXPECT_EQ(d.priors[0].num_rated, probed ? 4 : 500);
    EXPECT_EQ(d.slots[2].draft.num_rated, 10) << "what it saw itself is young";
  }
}

TEST_F(ChooseLengthsTest, WhatWasSeenBeforeARestCountsLittle) {
  StepData d{StepSizes{}};
  add_slot(d, 0, 3, 9000);
  add_slot(d, 1, 3, 9000);
  d.slots[0].draft.since_draft = 64;
  d.slots[0].draft.num_rated = 900;
  d.slots[1].draft.since_draft = 63;
  d.slots[1].draft.num_rated = 900;
  run(d, {0, 1000, 2000, 3000}, 10);
  EXPECT_EQ(d.slots[0].draft.num_rated, 4);
  EXPECT_EQ(d.slots[1].draft.num_rated, 900);
}

TEST_F(ChooseLengthsTest, RowsOfOtherDraftersCount) {
  // The third row is dear: with one more slot in the step a draft costs it.
  const std::vector<int32_t> row_ns = {0, 1000, 1001, 9000};
  for (const bool crowded : {false, true}) {
    StepData d{StepSizes{}};
    add_slot(d, 0, 1, 60000);
    add_slot(d, 1, 1, 60000);
    d.params[1].drafter = 1;
    if (!crowded) d.slots[1].finished = static_cast<int32_t>(DeviceFinish::kLength);
    run(d, row_ns, 0);
    EXPECT_EQ(d.slots[0].draft.num_draft_tokens, crowded ? 0 : 1);
    EXPECT_EQ(d.slots[1].draft.num_draft_tokens, -7);
  }
}

// Everything the choice is made from, for references that try all length vectors.
struct Choice {
  std::vector<Ids> levels;  // by slot, of the drafts that it can use
  Ids least;                // drafts that a probe gets anyway
  int num_slots;
  Ids row_ns;
  int draft_ns;

  double score(const Ids& lengths) const {
    double gain = num_slots;
    int rows = num_slots;
    for (size_t s = 0; s < lengths.size(); ++s) {
      for (int i = 0; i < lengths[s]; ++i) gain += (2 * levels[s][i] + 1) / 512.0;
      rows += lengths[s];
    }
    return gain / (row_ns[std::min<size_t>(rows, row_ns.size() - 1)] + double{1} * draft_ns);
  }
  // Drafts of a level are taken together.
  bool is_closed(const Ids& lengths) const {
    int lowest = 256;
    for (size_t s = 0; s < lengths.size(); ++s) {
      for (int i = least[s]; i < lengths[s]; ++i) lowest = std::min(lowest, levels[s][i]);
    }
    for (size_t s = 0; s < lengths.size(); ++s) {
      for (size_t i = lengths[s]; i < levels[s].size(); ++i) {
        if (levels[s][i] >= lowest) return false;
      }
    }
    return true;
  }
  bool levels_differ() const {
    Ids all;
    for (size_t s = 0; s < levels.size(); ++s) {
      all.insert(all.end(), levels[s].begin() + least[s], levels[s].end());
    }
    std::sort(all.begin(), all.end());
    return std::adjacent_find(all.begin(), all.end()) == all.end();
  }
  // The best vector; fewest drafts among equals.
  Ids best(bool closed_only) const {
    Ids lengths = least, found = least;
    double best_score = -1;
    int best_rows = 0;
    for (;;) {
      if (!closed_only || is_closed(lengths)) {
        const int rows = std::accumulate(lengths.begin(), lengths.end(), 0);
        const double s = score(lengths);
        if (s > best_score * (1 + 1e-12) || (s > best_score * (1 - 1e-12) && rows < best_rows)) {
          best_score = s;
          best_rows = rows;
          found = lengths;
        }
      }
      size_t at = 0;
      while (at < lengths.size() && lengths[at] == static_cast<int>(levels[at].size())) {
        lengths[at] = least[at];
        ++at;
      }
      if (at == lengths.size()) return found;
      ++lengths[at];
    }
  }
};

TEST_F(ChooseLengthsTest, AdaptiveIsTheBestOfAllLengthVectors) {
  std::mt19937 random(4);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int drafts_seen = 0, zeros_seen = 0, differing = 0;
  const int rounds = thinned(400);
  for (int round = 0; round < rounds; ++round) {
    StepData d{StepSizes{}};
    Choice choice;
    choice.num_slots = 1 + below(4);
    for (int s = 0; s < choice.num_slots; ++s) {
      add_slot(d, s, below(5));
      DraftState& draft = d.slots[s].draft;
      for (uint16_t& rate : draft.rates) rate = static_cast<uint16_t>(20000 + below(45536));
      draft.since_draft = below(8) == 0 ? 80 : 3;
      Ids levels;
      double survival = 65535;
      for (int i = 0; i < d.spans[s].num_draft_tokens; ++i) {
        survival = std::floor(survival * draft.rates[i] / 65535);
        levels.push_back(static_cast<int>(survival) / 256);
      }
      choice.levels.push_back(levels);
      choice.least.push_back(draft.since_draft >= 64 && !levels.empty() ? 1 : 0);
    }
    choice.row_ns = {0};
    for (int i = 0; i < 12; ++i) choice.row_ns.push_back(choice.row_ns.back() + 1 + below(400));
    for (int32_t& ns : choice.row_ns) ns += 1000;
    choice.draft_ns = below(500);
    run(d, choice.row_ns, choice.draft_ns);
    Ids got;
    for (int s = 0; s < choice.num_slots; ++s) got.push_back(d.slots[s].draft.num_draft_tokens);
    ASSERT_EQ(got, choice.best(true)) << "round " << round;
    if (choice.levels_differ()) {
      ++differing;
      ASSERT_GE(choice.score(got), choice.score(choice.best(false)) * (1 - 1e-12)) << round;
    }
    for (const int length : got) ++(length > 0 ? drafts_seen : zeros_seen);
  }
  EXPECT_GT(drafts_seen, rounds / 2);
  EXPECT_GT(zeros_seen, rounds / 2);
  EXPECT_GT(differing, rounds / 2);
}

}  // namespace
}  // namespace foretoken
