#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "draft/drafter_cases.h"
#include "support/sanitizers.h"

// Drafts and entries of every drafter against those of a fresh pass over the same ids, whatever
// happened to the sequence before.
namespace foretoken::test {
namespace {

// What is done over and over again is done less often where it takes ten times as long.
constexpr int some(int whole, int under_asan) { return FT_UNDER_ASAN ? under_asan : whole; }

class ExactDrafts : public testing::TestWithParam<DrafterCase> {
 protected:
  static constexpr int kDrafts = 6;  // divisible by any number of modules here

  void SetUp() override {
    if (test_device() == nullptr) GTEST_SKIP() << "no device";
    const KvFormat kv_format = GetParam().kv_format;
    const SpeculativeConfig config = GetParam().config(kDrafts);
    rig_ = std::make_unique<DraftRig>(GetParam().target(), std::vector{config},
                                      std::function<void(DrafterContext&)>(), "auto", kv_format);
    if (GetParam().probabilistic) {
      rig_->params.temperature = 1.5f;
      rig_->params.seed = 77;
    }
    reference_ = std::make_unique<Reference>(GetParam().target(), config, rig_->params, kv_format);
  }

  const DraftState& draft(int32_t slot) const { return rig_->state(slot).draft; }

  // The next step of a sequence whose prompt is computed.
  RigOutput next(int32_t slot, int limit, int rows = 64, int max_verified = kMaxDraftTokens) {
    return rig_->step({.slot = slot,
                       .num_tokens = rig_->state(slot).len - rig_->state(slot).computed,
                       .max_verified = max_verified,
                       .num_draft_tokens = limit,
                       .draft_rows = rows});
  }

  void expect_fresh(int32_t slot, const RigOutput& output, int limit) {
    ASSERT_EQ(draft(slot).computed, rig_->state(slot).len);
    ASSERT_EQ(output.proposed, reference_->drafts(rig_->tokens(slot), limit))
        << "behind " << rig_->tokens(slot).size() << " tokens";
  }

  // Every entry that counts as exact, byte by byte.
  void expect_exact_entries(int32_t slot) {
    const std::vector<int32_t> ids = rig_->tokens(slot);
    const Reference::Entries fresh = reference_->entries(ids);
    const KvCache& cache = *rig_->drafter().kv_cache();
    for (int32_t i = GetParam().first_entry(); i < draft(slot).computed; ++i) {
      ASSERT_EQ(rig_->entry(cache, slot, i), fresh.drafter[static_cast<size_t>(i)])
          << "entry " << i;
    }
    for (int32_t i = 0; i < rig_->state(slot).computed; ++i) {
      ASSERT_EQ(rig_->entry(rig_->target_cache(), slot, i), fresh.target[static_cast<size_t>(i)])
          << "target entry " << i;
    }
  }

  std::unique_ptr<DraftRig> rig_;
  std::unique_ptr<Reference> reference_;
};

TEST_P(ExactDrafts, AfterFullAndPartialAcceptance) {
  int full = 0, partial = 0, none = 0;
  rig_->start(0, cycle_from(3, 11));
  RigOutput output = next(0, kDrafts);
  ASSERT_NO_FATAL_FAILURE(expect_fresh(0, output, kDrafts));
  while (rig_->state(0).len < 120) {
    const size_t offered = output.proposed.size();
    output = next(0, kDrafts);
    ASSERT_NO_FATAL_FAILURE(expect_fresh(0, output, kDrafts));
    ASSERT_EQ(output.drafted.size(), offered);
    ++(output.num_accepted == kDrafts ? full : output.num_accepted > 0 ? partial : none);
  }
  if (!GetParam().probabilistic) expect_follows_cycle(rig_->tokens(0), 11);
  EXPECT_GT(partial, 0);
  EXPECT_GT(full + none, 0);
  expect_exact_entries(0);
}

// Entries of accepted drafts are kept where they may be, so little is computed twice.
TEST_P(ExactDrafts, LittleIsCaughtUpTwice) {
  rig_->start(0, cycle_from(50, 20));
  RigOutput output = next(0, 3);
  while (rig_->state(0).len < 90) {
    const auto offered = static_cast<int32_t>(output.proposed.size());
    output = next(0, 3);
    const bool keeps = rig_->drafter().traits().keeps_written;
    // Behind full acceptance the last draft's entry and the bonus token's are missing.
    const int expected = !keeps ? output.num_accepted + 1 : output.num_accepted == offered ? 2 : 1;
    EXPECT_EQ(output.draft_missing, offered == 0 ? 1 : expected);
  }
}

TEST_P(ExactDrafts, AfterChunkedPrefill) {
  std::mt19937 engine(5);
  for (int trial = 0; trial < some(6, 3); ++trial) {
    const int len = 20 + static_cast<int>(engine() % 40);
    rig_->start(0, cycle_from(trial * 31, len));
    RigOutput output;
    while (rig_->state(0).computed < rig_->state(0).len - 1 || rig_->state(0).len == len) {
      const int left = rig_->state(0).len - rig_->state(0).computed;
      const int chunk = std::min(left, 1 + static_cast<int>(engine() % 9));
      // Now and then a chunk is not caught up, or not wholly.
      const int rows = engine() % 3 == 0 ? static_cast<int>(engine() % 4) : 64;
      const bool last = chunk == left;
      output = rig_->step({.slot = 0,
                           .num_tokens = chunk,
                           .num_draft_tokens = last ? kDrafts : 0,
                           .draft_rows = last ? 64 : rows});
      if (last) break;
      EXPECT_TRUE(output.proposed.empty());
    }
    ASSERT_NO_FATAL_FAILURE(expect_fresh(0, output, kDrafts));
    ASSERT_NO_FATAL_FAILURE(expect_exact_entries(0));
    rig_->release(0);
  }
}

TEST_P(ExactDrafts, AfterAHundredStepsAtRest) {
  rig_->start(0, cycle_from(9, 6));
  next(0, 2);
  const int64_t proposals = rig_->num_proposals;
  for (int i = 0; i < some(100, 30); ++i) {
    const RigOutput output = next(0, 0, 0);
    EXPECT_TRUE(output.proposed.empty());
  }
  // The drafts that stood were verified, nothing was enqueued.
  EXPECT_EQ(rig_->num_proposals, proposals);
  RigOutput output = next(0, 3, DraftRig::kMaxRows);
  ASSERT_NO_FATAL_FAILURE(expect_fresh(0, output, 3));
  output = next(0, 3);
  ASSERT_NO_FATAL_FAILURE(expect_fresh(0, output, 3));
  expect_exact_entries(0);
}

// A budget of few rows a step: no drafts before the last entry is there, then exact ones.
TEST_P(ExactDrafts, CaughtUpInPieces) {
  rig_->start(0, cycle_from(70, 30));
  next(0, 0, 0);
  int steps = 0;
  RigOutput output;
  do {
    output = next(0, 3, 8);
    ++steps;
    EXPECT_EQ(output.proposed.empty(), draft(0).computed < rig_->state(0).len);
  } while (output.proposed.empty() && steps < 20);
  // 32 tokens and one more a step by 8: the fifth reaches the end, whether entry 0 exists or not.
  EXPECT_EQ(steps, 5);
  ASSERT_NO_FATAL_FAILURE(expect_fresh(0, output, 3));
  expect_exact_entries(0);
}

// The scheduler may verify fewer drafts than were proposed, down to none.
TEST_P(ExactDrafts, AfterDraftsThatWereCut) {
  rig_->start(0, cycle_from(33, 8));
  RigOutput output = next(0, 5);
  for (int i = 0; rig_->state(0).len < 80; ++i) {
    const int cut = i % 6;
    output = next(0, 5, 64, cut);
    EXPECT_LE(output.drafted.size(), static_cast<size_t>(cut));
    ASSERT_NO_FATAL_FAILURE(expect_fresh(0, output, 5));
  }
  expect_exact_entries(0);
}

// A hit brings the entries that were computed along, and what was not is caught up.
TEST_P(ExactDrafts, OnPrefixHitsOfAnyLength) {
  const std::vector<int32_t> ids = cycle_from(21, 45);
  for (const int drafted_len : {0, 20, 45}) {
    // The first sequence drafts up to some length, then opts out; its blocks stay.
    rig_->start(0, {ids.begin(), ids.begin() + 20});
    rig_->step({.slot = 0,
                .num_tokens = 20,
                .max_verified = 0,
                .num_draft_tokens = 0,
                .draft_rows = drafted_len == 0 ? 0 : 64});
    while (rig_->state(0).len < 45) {
      next(0, 0, rig_->state(0).len < drafted_len ? 64 : 0, 0);
    }
    const std::vector<int32_t> blocks = rig_->blocks(0);
    const int known = draft(0).computed;
    rig_->release(0, true);
    for (int hits = 0; hits * DraftRig::kBlockSize < 44; hits += some(1, 2)) {
      rig_->start(1, ids, {blocks.begin(), blocks.begin() + hits});
      // Just the rows that the hits do not save.
      const int first = std::min(GetParam().first_entry(), 1);
      const int saved = std::max(first, std::min(known, hits * DraftRig::kBlockSize));
      const RigOutput output = next(1, kDrafts, 46 - saved);
      ASSERT_NO_FATAL_FAILURE(expect_fresh(1, output, kDrafts));
      ASSERT_NO_FATAL_FAILURE(expect_exact_entries(1));
      rig_->release(1);
    }
  }
}

// Preempted: its blocks are handed out to another sequence, then everything is computed again.
TEST_P(ExactDrafts, AfterPreemption) {
  rig_->start(0, cycle_from(5, 10));
  for (int i = 0; i < 6; ++i) next(0, 4);
  const std::vector<int32_t> ids = rig_->tokens(0);
  rig_->release(0);
  rig_->start(1, cycle_from(90, 40));
  for (int i = 0; i < 4; ++i) next(1, 4);
  rig_->start(0, ids);
  RigOutput output = next(0, 4);
  ASSERT_NO_FATAL_FAILURE(expect_fresh(0, output, 4));
  output = next(1, 4);
  ASSERT_NO_FATAL_FAILURE(expect_fresh(1, output, 4));
  expect_exact_entries(0);
  expect_exact_entries(1);
}

TEST_P(ExactDrafts, OptedOutAndBack) {
  rig_->params.max_draft_tokens = 0;
  rig_->start(0, cycle_from(60, 17));
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(next(0, 0, 0).proposed.empty());
  const std::vector<int32_t> ids = rig_->tokens(0);
  const std::vector<int32_t> blocks = rig_->blocks(0);
  rig_->release(0, true);
  rig_->params.max_draft_tokens = kMaxDraftTokens;
  rig_->start(2, ids, {blocks.begin(), blocks.begin() + 3});
  const RigOutput output = next(2, kDrafts);
  ASSERT_NO_FATAL_FAILURE(expect_fresh(2, output, kDrafts));
  expect_exact_entries(2);
}

// One sequence asks for fewer drafts than another in the same passes.
TEST_P(ExactDrafts, RaggedInOneBatch) {
  for (int32_t slot = 0; slot < 4; ++slot) {
    rig_->params.max_draft_tokens = slot;
    rig_->start(slot, cycle_from(slot * 40, 5 + slot * 9));
    rig_->params.max_draft_tokens = kMaxDraftTokens;
  }
  for (int step = 0; step < some(12, 6); ++step) {
    std::vector<RigSpan> spans;
    for (int32_t slot = 3; slot >= 0; --slot) {
      spans.push_back({.slot = slot,
                       .num_tokens = rig_->state(slot).len - rig_->state(slot).computed,
                       .num_draft_tokens = 3});
    }
    const std::vector<RigOutput> outputs = rig_->step(spans);
    for (size_t i = 0; i < spans.size(); ++i) {
      const int32_t slot = spans[i].slot;
      ASSERT_EQ(outputs[i].proposed.size(), static_cast<size_t>(slot));
      std::vector<int32_t> expected = reference_->drafts(rig_->tokens(slot), 3);
      expected.resize(static_cast<size_t>(slot));
      ASSERT_EQ(outputs[i].proposed, expected);
    }
  }
  for (int32_t slot = 0; slot < 4; ++slot) ASSERT_NO_FATAL_FAILURE(expect_exact_entries(slot));
}

// What a schedule may do to four sequences, in any order: chunks, rests, cuts, budgets, ends, hits
// on what was kept and blocks that others had.
class RandomSchedule {
 public:
  RandomSchedule(DraftRig& rig, Reference& reference, int max_draft_tokens, uint32_t seed)
      : rig_(rig), reference_(reference), max_draft_tokens_(max_draft_tokens), engine_(seed) {}

  void step() {
    std::vector<RigSpan> spans;
    std::vector<bool> samples;
    for (int32_t slot = 0; slot < kSlots; ++slot) {
      if (draw(5) == 0) continue;
      if (!running_[slot]) begin(slot);
      spans.push_back(span(slot));
      const SlotState& state = rig_.state(slot);
      samples.push_back(spans.back().num_tokens == state.len - state.computed);
    }
    if (spans.empty()) return;
    const std::vector<RigOutput> outputs = rig_.step(spans);
    for (size_t i = 0; i < spans.size(); ++i) {
      ASSERT_NO_FATAL_FAILURE(check(spans[i], samples[i], outputs[i]));
      if (rig_.state(spans[i].slot).len > end_[spans[i].slot]) finish(spans[i].slot);
    }
  }
  int num_checked = 0;

 private:
  static constexpr int32_t kSlots = 4;
  int draw(int count) { return static_cast<int>(engine_() % static_cast<uint32_t>(count)); }

  struct Kept {
    std::vector<int32_t> ids, blocks;
  };

  void begin(int32_t slot) {
    running_[slot] = true;
    if (kept_.empty() || draw(2) == 0) {
      rig_.start(slot, cycle_from(draw(250), 2 + draw(30)));
    } else {
      const Kept& old = kept_[static_cast<size_t>(draw(static_cast<int>(kept_.size())))];
      const int cut = std::max(2, static_cast<int>(old.ids.size()) - draw(8));
      const int hits = draw(1 + (cut - 1) / DraftRig::kBlockSize);
      rig_.start(slot, {old.ids.begin(), old.ids.begin() + cut},
                 {old.blocks.begin(), old.blocks.begin() + hits});
    }
    end_[slot] = rig_.state(slot).len + draw(40);
  }

  RigSpan span(int32_t slot) {
    const SlotState& state = rig_.state(slot);
    const int missing = state.len - state.computed;
    const int budgets[] = {0, 1, 3, 64, 64, 64};
    return {.slot = slot,
            .num_tokens = missing > 1 ? 1 + draw(missing) : 1,
            .max_verified = draw(4) == 0 ? draw(3) : kMaxDraftTokens,
            .num_draft_tokens = std::max(0, draw(max_draft_tokens_ + 3) - 2),
            .draft_rows = budgets[draw(6)]};
  }

  void check(const RigSpan& span, bool samples, const RigOutput& output) {
    const SlotState& state = rig_.state(span.slot);
    if (!samples || span.num_draft_tokens == 0 || state.draft.computed < state.len) {
      ASSERT_TRUE(output.proposed.empty());
      return;
    }
    ++num_checked;
    ASSERT_EQ(output.proposed, reference_.drafts(rig_.tokens(span.slot), span.num_draft_tokens))
        << "slot " << span.slot << ", " << state.len << " tokens";
  }

  void finish(int32_t slot) {
    const bool keep = draw(2) == 0;
    if (keep) kept_.push_back({rig_.tokens(slot), rig_.blocks(slot)});
    rig_.release(slot, keep);
    running_[slot] = false;
  }

  DraftRig& rig_;
  Reference& reference_;
  const int max_draft_tokens_;
  std::mt19937 engine_;
  bool running_[kSlots] = {};
  int end_[kSlots] = {};
  std::vector<Kept> kept_;
};

TEST_P(ExactDrafts, UnderAnySchedule) {
  RandomSchedule schedule(*rig_, *reference_, kDrafts, 11);
  for (int step = 0; step < 200; ++step) ASSERT_NO_FATAL_FAILURE(schedule.step());
  EXPECT_GT(schedule.num_checked, 120);
}

INSTANTIATE_TEST_SUITE_P(Drafters, ExactDrafts, testing::ValuesIn(drafter_cases()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace foretoken::test
