#include <algorithm>

#include "base/philox.h"
#include "kernels/step/verify_and_commit.h"
#include "support/step_data.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

// What verify_and_commit does beside the rule `coupled`: entries of drafters, the rule `synthetic`,
// the bonus.
class VerifyAndCommitDraftTest : public StepTest {
 protected:
  // Slot `slot` has `len` tokens, the last one not computed, and these drafts.
  static void add_slot(StepData& d, int slot, int len, const Ids& drafts) {
    Ids tokens(static_cast<size_t>(len));
    for (int i = 0; i < len; ++i) tokens[i] = 10 * slot + i;
    d.set_sequence(slot, tokens, len - 1);
    d.set_drafts(slot, drafts);
    d.add_span(slot, 1, kMaxDraftTokens);
  }
  void run(StepData& d, const Ids& sampled, const uint32_t* synthetic = nullptr) {
    push(d);
    prepare(queue(), prepare_args());
    write(tensors_.sampled, sampled);
    VerifyAndCommitArgs args = verify_and_commit_args();
    args.synthetic = synthetic;
    verify_and_commit(queue(), args);
    pull(d);
  }
  static Ids committed(const StepData& d, int span) {
    const SpanResult& r = d.results[span];
    return Ids(r.ids, r.ids + r.num_committed);
  }
  static Ids counts(StepData& d, int slot, int drafter, int num_blocks) {
    Ids found;
    for (int b = 0; b < num_blocks; ++b) {
      found.push_back(d.page_header(slot, b * d.sizes.block_size).draft_counts[drafter]);
    }
    return found;
  }
};

TEST_F(VerifyAndCommitDraftTest, EntriesOfAcceptedDraftsStayExact) {
  struct {
    int written;
    Ids sampled;
    int computed;
    Ids counts;
  } const cases[] = {
      {9, {70, 71, 72, 9}, 9, {0, 4, 1}},  // three accepted: entries up to the last token
      {9, {70, 71, 1, 9}, 8, {0, 4, 0}},   // two accepted and a corrected id at position 8
      {9, {1, 71, 72, 9}, 6, {0, 2, 0}},   // none
      {7, {70, 71, 72, 9}, 7, {0, 3, 0}},  // fewer were written than accepted
      {0, {70, 71, 72, 9}, 6, {0, 2, 0}},  // nothing was written
  };
  for (const auto& c : cases) {
    StepData d{StepSizes{}};
    add_slot(d, 2, 6, {70, 71, 72});
    d.params[2].drafter = 3;
    d.slots[2].draft.computed = 6;
    d.slots[2].draft.written = c.written;
    d.page_header(2, 4).draft_counts[3] = 2;
    run(d, c.sampled);
    EXPECT_EQ(d.slots[2].draft.computed, c.computed) << c.written;
    EXPECT_EQ(d.slots[2].draft.written, 0);
    EXPECT_EQ(counts(d, 2, 3, 3), c.counts) << c.written << " " << c.sampled[0];
    for (int k = 0; k < 3; ++k) EXPECT_EQ(counts(d, 2, k, 3), (Ids{0, 0, 0}));
    EXPECT_EQ(d.results[0].draft_missing, d.slots[2].len - c.computed);
  }
}

TEST_F(VerifyAndCommitDraftTest, AStopAmongTheDraftsCutsTheEntriesToo) {
  StepData d{StepSizes{}};
  add_slot(d, 0, 3, {7, 5, 8});
  d.params[0].num_stop_ids = 1;
  d.params[0].stop_ids[0] = 5;
  d.slots[0].draft.computed = 3;
  d.slots[0].draft.written = 5;
  run(d, {7, 5, 8, 9});
  EXPECT_EQ(committed(d, 0), (Ids{7, 5}));
  EXPECT_EQ(d.slots[0].draft.computed, 4);
  EXPECT_EQ(counts(d, 0, 0, 2), (Ids{4, 0}));
}

TEST_F(VerifyAndCommitDraftTest, ResultsTellDraftsAndWhatIsMissing) {
  StepData d{StepSizes{}};
  add_slot(d, 1, 9, {70, 71});
  d.slots[1].draft.computed = 4;
  d.slots[1].draft.since_draft = 30;
  add_slot(d, 2, 5, {});
  d.slots[2].draft.since_draft = 30;
  d.set_sequence(3, Ids(12, 6), 2);
  d.slots[3].draft.computed = 1;
  d.slots[3].draft.since_draft = 2;
  d.add_span(3, 4, 0, 2, 9);
  run(d, {70, 9, 9, 40});
  EXPECT_EQ(Ids(d.results[0].drafts, d.results[0].drafts + 2), (Ids{70, 71}));
  EXPECT_EQ(d.results[0].num_drafted, 2);
  EXPECT_EQ(d.results[0].num_accepted, 1);
  EXPECT_EQ(d.results[0].draft_missing, 11 - 4);
  EXPECT_EQ(d.slots[1].draft.since_draft, 0);
  EXPECT_EQ(d.results[1].num_drafted, 0);
  EXPECT_EQ(d.results[1].draft_missing, 6) << "everything: the headers are not looked at";
  EXPECT_EQ(d.slots[2].draft.since_draft, 31);
  EXPECT_EQ(d.results[2].draft_missing, 6 - 1) << "computed by the target, not known";
  EXPECT_EQ(d.slots[3].draft.since_draft, 2);
  EXPECT_EQ(d.slots[3].draft.computed, 1);
}

// The draws of kernels/step/verify_and_commit.h, word for word.
int accepted_by_draws(const SlotParams& p, int len, int drafts,
                      const std::vector<uint32_t>& chance) {
  int accepted = 0;
  while (accepted < drafts) {
    const uint32_t draw = philox4x32(0, static_cast<uint32_t>(len + accepted),
                                     static_cast<uint32_t>(p.choice), 1, p.seed)
                              .v[0];
    if (chance[accepted] != UINT32_MAX && draw >= chance[accepted]) break;
    ++accepted;
  }
  return accepted;
}

TEST_F(VerifyAndCommitDraftTest, SyntheticRuleCommitsDraftsByDraws) {
  const std::vector<uint32_t> chance(kMaxDraftTokens, 1u << 31);
  const uint32_t* device_chance = to_device(chance);
  int seen[4] = {};
  for (int round = 0; round < 40; ++round) {
    StepData d{StepSizes{}};
    for (int s = 0; s < 4; ++s) {
      add_slot(d, s, 5 + (round + s) % 7, {50, 51, 52});
      d.params[s].seed = 1000 + static_cast<uint64_t>(round) * 0x100000001ull;
      d.params[s].choice = s / 2;
    }
    const StepData before = d;
    Ids sampled(16);
    for (int i = 0; i < 16; ++i) sampled[i] = i % 4 == 0 ? -1 : 200 + i;
    for (int s = 0; s < 4; ++s) {
      const int a = accepted_by_draws(d.params[s], d.slots[s].len, 3, chance);
      if (a == 0) sampled[4 * s] = 200 + 4 * s;
    }
    run(d, sampled, device_chance);
    for (int s = 0; s < 4; ++s) {
      const int len = before.slots[s].len;
      const int a = accepted_by_draws(before.params[s], len, 3, chance);
      ++seen[a];
      Ids want = {50, 51, 52};
      want.resize(static_cast<size_t>(a));
      want.push_back(200 + 4 * s + a);
      ASSERT_EQ(committed(d, s), want) << "round " << round << " slot " << s;
      ASSERT_EQ(d.results[s].num_accepted, a);
      ASSERT_EQ(d.slots[s].len, len + a + 1);
      ASSERT_EQ(d.slots[s].finished, 0) << "a -1 in a row that is not used does not matter";
    }
  }
  for (const int count : seen) EXPECT_GT(count, 0);
}

TEST_F(VerifyAndCommitDraftTest, SyntheticChancesOfZeroAndOne) {
  std::vector<uint32_t> chance(kMaxDraftTokens, UINT32_MAX);
  chance[2] = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    StepData d{StepSizes{}};
    add_slot(d, 0, 5, {50, 51, 52, 53});
    d.params[0].seed = seed;
    run(d, {1, 2, 3, 4, 5}, to_device(chance));
    ASSERT_EQ(committed(d, 0), (Ids{50, 51, 3}));
  }
}

TEST_F(VerifyAndCommitDraftTest, SyntheticIdsStopAndFailLikeAny) {
  const std::vector<uint32_t> always(kMaxDraftTokens, UINT32_MAX);
  StepData d{StepSizes{}};
  add_slot(d, 0, 5, {50, 51, 52});
  d.params[0].num_stop_ids = 1;
  d.params[0].stop_ids[0] = 51;
  add_slot(d, 1, 5, {50});
  add_slot(d, 2, 5, {50, 51});
  d.params[2].max_len = 7;
  run(d, {1, 2, 3, 4, 5, -1, 7, 8, 9}, to_device(always));
  EXPECT_EQ(committed(d, 0), (Ids{50, 51}));
  EXPECT_EQ(d.results[0].finish, static_cast<int32_t>(DeviceFinish::kStop));
  EXPECT_EQ(committed(d, 1), (Ids{50}));
  EXPECT_EQ(d.results[1].finish, static_cast<int32_t>(DeviceFinish::kError));
  EXPECT_EQ(committed(d, 2), (Ids{50, 51}));
  EXPECT_EQ(d.results[2].finish, static_cast<int32_t>(DeviceFinish::kLength));
}

// Emitted tokens over many verifications: 1 + p + p^2 + ... + p^K, the bonus among them.
TEST_F(VerifyAndCommitDraftTest, LongRunRatesAreThoseAskedFor) {
  StepSizes sizes;
  sizes.num_slots = 500;
  sizes.max_blocks = 4;
  sizes.max_rows = sizes.max_logits_rows = 500 * 4;
  sizes.limits = {500, 4, 4, 4};
  sizes.result_limits = {500, 0, 0, 0};
  constexpr double kChance[] = {0.8, 0.75, 2.0 / 3};  // 0.8, 0.6, 0.4 from the first draft on
  std::vector<uint32_t> chance(kMaxDraftTokens, 0);
  for (int i = 0; i < 3; ++i) chance[i] = static_cast<uint32_t>(kChance[i] * 4294967296.0);
  const uint32_t* device_chance = to_device(chance);
  constexpr int kRounds = 40;
  int64_t emitted = 0, accepted[3] = {};
  for (int round = 0; round < kRounds; ++round) {
    StepData d{sizes};
    for (int s = 0; s < sizes.num_slots; ++s) {
      add_slot(d, s, 5, {50, 51, 52});
      d.params[s].seed = static_cast<uint64_t>(round) << 32 | static_cast<uint64_t>(s);
    }
    run(d, Ids(2000, 9), device_chance);
    for (int s = 0; s < sizes.num_slots; ++s) {
      emitted += d.results[s].num_committed;
      for (int i = 0; i < d.results[s].num_accepted; ++i) ++accepted[i];
    }
  }
  constexpr double kSteps = kRounds * 500;
  EXPECT_NEAR(accepted[0] / kSteps, 0.8, 0.008);
  EXPECT_NEAR(accepted[1] / kSteps, 0.6, 0.006);
  EXPECT_NEAR(accepted[2] / kSteps, 0.4, 0.008);
  EXPECT_NEAR(emitted / kSteps, 2.8, 0.028);
  EXPECT_EQ(emitted, kRounds * 500 + accepted[0] + accepted[1] + accepted[2])
      << "each has its bonus";
}

}  // namespace
}  // namespace foretoken
