#include <gtest/gtest.h>

#include "sched/draft_ledger.h"

namespace foretoken {
namespace {

constexpr int kOne = LookupGain::kOne;

TEST(LookupRoom, ClassesDouble) {
  EXPECT_EQ(LookupGain::class_of(0), 0);
  EXPECT_EQ(LookupGain::class_of(kOne / 32 - 1), 0);
  EXPECT_EQ(LookupGain::class_of(kOne / 32), 1);
  EXPECT_EQ(LookupGain::class_of(kOne / 16 - 1), 1);
  EXPECT_EQ(LookupGain::class_of(kOne / 2), 5);
  EXPECT_EQ(LookupGain::class_of(kOne), 6);
  EXPECT_EQ(LookupGain::class_of(1 << 20), LookupGain::kNumClasses - 1);
}

constexpr SchedulerDrafter kLooksUp{.looks_up = true};
constexpr SchedulerDrafter kWithEntries{.has_kv = true};
constexpr SchedulerDrafter kChain{};  // heads without entries

// A ledger with one drafter, or a look-up before a head, and a sequence that decodes.
class LookupLedger {
 public:
  explicit LookupLedger(bool is_list, const SchedulerDrafter& alone = kLooksUp)
      : ledger_(is_list ? std::vector{kLooksUp, kWithEntries} : std::vector{alone}),
        looks_up_(is_list || alone.looks_up) {
    sequence_.tokens.assign(20, 1);
    sequence_.prompt_len = 10;
    sequence_.max_len = 100;
    sequence_.max_draft_tokens = 8;
    sequence_.caught_up = true;
    sequence_.drafter = is_list ? 1 : 0;
    sequence_.lookups = is_list ? 1 : 0;
  }
  // Of so many steps, those in which it had room for the look-up's drafts, if those that gain less
  // than the class have none.
  int steps_with_room(int min_class, int num_steps) {
    const std::vector<DraftGrant> grants = {
        {.num_draft_tokens = 4, .min_class = min_class, .min_listed_class = min_class}};
    return drafting_steps(grants, num_steps);
  }
  // Of so many steps with these grants, those in which it had drafts.
  int drafting_steps(const std::vector<DraftGrant>& grants, int num_steps) {
    int count = 0;
    for (int step = 0; step < num_steps; ++step) {
      ledger_.open(grants);
      StepPlan plan;
      plan.spans.push_back({.sequence = &sequence_,
                            .num_tokens = 1,
                            .samples = true,
                            .num_draft_tokens = ledger_.hoped_limit(sequence_),
                            .num_lookup_tokens = ledger_.hoped_lookups(sequence_)});
      ledger_.deal(plan);
      const bool has_drafts = sequence_.draft_bound > 0;
      EXPECT_EQ(sequence_.had_lookups, looks_up_ && has_drafts);
      EXPECT_EQ(plan.drafts[0].num_spans, has_drafts ? 1 : 0);
      if (has_drafts) ++count;
    }
    return count;
  }
  void note(int num_accepted, bool is_likely = false, bool had_lookups = true, int drafter = 0) {
    ledger_.note_lookups({.sequence = &sequence_, .had_lookups = had_lookups}, drafter,
                         num_accepted, is_likely);
  }
  int gain() const { return sequence_.lookup_gain; }
  BatchDemand demand() const {
    BatchDemand demand;
    ledger_.describe(sequence_, demand);
    return demand;
  }

 private:
  DraftLedger ledger_;
  const bool looks_up_;
  Sequence sequence_;
};

TEST(LookupRoom, ASequenceThatGainsTooLittleIsTriedNowAndThen) {
  for (const bool is_list : {false, true}) {
    LookupLedger ledger(is_list);
    const int least = LookupGain::class_of(kOne);
    EXPECT_EQ(ledger.steps_with_room(least, 64), 64) << "of a new one nothing is known";
    for (int i = 0; i < 16; ++i) ledger.note(0);
    EXPECT_EQ(ledger.steps_with_room(least, 4 * LookupGain::turn_of(least, true)), 4);
    EXPECT_EQ(ledger.steps_with_room(0, 64), 64) << "all have room";
    ledger.note(4);
    EXPECT_EQ(ledger.steps_with_room(least, 64), 64) << "it repeats itself";
  }
}

// What heads without entries gain is none of a look-up's: no class keeps room from them.
TEST(LookupRoom, DraftersWithoutEntriesThatLookNothingUpHaveRoomAlways) {
  const std::vector<DraftGrant> grants = {
      {.num_draft_tokens = 4, .min_class = LookupGain::kNumClasses - 1}};
  LookupLedger lookup(false);
  LookupLedger chain(false, kChain);
  for (int i = 0; i < 16; ++i) {
    lookup.note(0);
    chain.note(0);
  }
  EXPECT_LT(lookup.drafting_steps(grants, 64), 64);
  EXPECT_EQ(chain.drafting_steps(grants, 64), 64);
}

TEST(LookupRoom, ALongPieceOfTextIsWorthATry) {
  LookupLedger ledger(false);
  for (int i = 0; i < 16; ++i) ledger.note(0);
  ledger.note(0, true);
  EXPECT_GE(ledger.gain(), LookupGain::kFound * 7 / 8);
  for (int i = 0; i < 16; ++i) ledger.note(0, true);
  EXPECT_LT(ledger.gain(), kOne) << "it was one and the same";
}

// Of steps in which it had room; the drafts of a head say nothing of a look-up.
TEST(LookupRoom, GainsAreOfTheLookupsOwnDrafts) {
  LookupLedger ledger(true);
  ledger.note(4, false, true, 1);
  EXPECT_LT(ledger.gain(), LookupGain::kFirst);
  const int before = ledger.gain();
  ledger.note(0, false, false);
  EXPECT_EQ(ledger.gain(), before);
  for (int i = 0; i < 100; ++i) ledger.note(0);
  EXPECT_LT(ledger.gain(), kOne / 32);
  const BatchDemand demand = ledger.demand();
  EXPECT_EQ(demand.drafters[0].num_listed_gaining[0], 1);
  ledger.note(8);
  EXPECT_GE(ledger.gain(), 4 * kOne);
  EXPECT_EQ(ledger.demand().drafters[0].num_listed_gaining[8], 1);
}

}  // namespace
}  // namespace foretoken
