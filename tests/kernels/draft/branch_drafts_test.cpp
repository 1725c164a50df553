#include "kernels/draft/branch_drafts.h"

#include "support/step_data.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;
using RowOfIds = std::vector<DraftAlternative>;

// Slots 4 to 6 are branches.
class BranchDraftsTest : public StepTest {
 protected:
  static constexpr int kRows = 12;
  static constexpr int kEach = kDraftAlternatives + 1;

  static StepData new_data() {
    StepSizes sizes;
    sizes.num_slots = 7;
    sizes.num_branches = 3;
    sizes.branch_blocks = 2;
    StepData d(sizes);
    d.header.step = 8;
    for (const int slot : {0, 1, 2, 3}) {
      d.set_sequence(slot, Ids(static_cast<size_t>(6 + slot), 1), 5 + slot);
      d.slots[slot].draft.num_draft_tokens = 4;
      d.params[slot].seed = static_cast<uint64_t>(100 + slot);
    }
    return d;
  }

  struct Pass {
    int number = 0;
    Ids slots;                   // of the rows, one logits row each
    std::vector<RowOfIds> rows;  // the draft and the others
    int max_branches = 3;
    int min_chance = 100;
  };
  struct Found {
    int num_rows = 0;
    Ids slots, sampled, logits_rows;
  };
  Found run(StepData& d, const Pass& pass) {
    push(d);
    std::vector<DraftAlternative> alternatives(kRows * kEach, {-1, 0});
    Ids sampled(kRows, -5), logits_rows(kRows, -5);
    for (size_t j = 0; j < pass.rows.size(); ++j) {
      std::copy(pass.rows[j].begin(), pass.rows[j].end(),
                alternatives.begin() + static_cast<int64_t>(j) * kEach);
      sampled[j] = pass.rows[j][0].id;
      logits_rows[j] = static_cast<int32_t>(j);
    }
    const auto num_rows = static_cast<int32_t>(pass.rows.size());
    const BranchDraftsArgs args{
        .plan = plan_,
        .limits = sizes_.limits,
        .batch = batch_,
        .counts = to_device(std::vector<StepCounts>{{num_rows, num_rows, 0, 0}}),
        .logits_rows = to_device(logits_rows),
        .sampled = to_device(sampled),
        .row_slot = to_device(pass.slots),
        .alternatives = to_device(alternatives),
        .slots = to_device(Ids(kRows, -5)),
        .pass = pass.number,
        .min_chance = pass.min_chance,
        .max_branches = pass.max_branches,
        .max_rows = kRows};
    branch_drafts(queue(), args);
    pull(d);
    Found found{read(args.counts, 1)[0].num_logits_rows, read(args.slots, kRows),
                read(args.sampled, kRows), read(args.logits_rows, kRows)};
    for (Ids* ids : {&found.slots, &found.sampled, &found.logits_rows}) {
      ids->resize(static_cast<size_t>(found.num_rows));
    }
    return found;
  }
};

TEST_F(BranchDraftsTest, TheLikeliestBeginFirst) {
  StepData d = new_data();
  d.slots[2].draft.written = 9;
  const Found found = run(d, {.slots = {0, 2},
                              .rows = {{{30, 40000}, {31, 9000}, {32, 50}},
                                       {{40, 30000}, {41, 20000}, {42, 9000}, {43, 8000}}}});
  EXPECT_EQ(found.num_rows, 5);
  EXPECT_EQ(found.slots, (Ids{0, 2, 4, 5, 6}));
  EXPECT_EQ(found.sampled, (Ids{30, 40, 41, 31, 42})) << "ties to the lowest row";
  EXPECT_EQ(found.logits_rows, (Ids{0, 1, 1, 0, 1}));
  EXPECT_EQ(d.slots[0].branch.chance, 40000);
  EXPECT_EQ(d.slots[2].branch.chance, 30000);
  for (const int slot : {0, 2, 4, 5, 6}) EXPECT_EQ(d.slots[slot].branch.stamp, 9) << slot;
  EXPECT_EQ(d.slots[4].branch.leader, 2);
  EXPECT_EQ(d.slots[4].branch.parent, 2);
  EXPECT_EQ(d.slots[4].branch.begin, 0);
  EXPECT_EQ(d.slots[4].branch.chance, 20000);
  EXPECT_EQ(d.slots[4].len, 8);
  EXPECT_EQ(d.slots[4].computed, 7);
  EXPECT_EQ(d.slots[4].draft.num_draft_tokens, 4);
  EXPECT_EQ(d.slots[4].draft.written, 9);
  EXPECT_EQ(d.params[4].seed, 102u);
  EXPECT_EQ(d.params[5].seed, 100u);
  // The last known token of slot 2 is at position 7, in block 1 of the table.
  const int own = 1 + 7 * 8;
  EXPECT_EQ(d.block_tables[4 * 8 + 1], own);
  EXPECT_EQ(d.block_tables[4 * 8 + 2], own + 1);
  EXPECT_EQ(d.window_tables[6 * 8 + 1], own + 4);
}

TEST_F(BranchDraftsTest, BranchesOfBranchesFollowTheSameSequence) {
  StepData d = new_data();
  d.set_drafts(1, {50, 51});
  d.slots[1].branch = {.stamp = 9, .chance = 30000};
  d.slots[5] = d.slots[1];
  d.set_drafts(5, {60, 61});
  d.slots[5].branch = {.stamp = 9, .chance = 20000, .leader = 1, .parent = 1, .begin = 0};
  const Found found = run(d, {.number = 2,
                              .slots = {1, 5},
                              .rows = {{{52, 65535}}, {{62, 32768}, {63, 16384}}},
                              .max_branches = 2});
  EXPECT_EQ(found.slots, (Ids{1, 5, 4}));
  EXPECT_EQ(found.sampled, (Ids{52, 62, 63}));
  EXPECT_EQ(d.slots[1].branch.chance, 30000);
  EXPECT_EQ(d.slots[5].branch.chance, 10000);
  EXPECT_EQ(d.slots[4].branch.chance, 5000);
  EXPECT_EQ(d.slots[4].branch.leader, 1);
  EXPECT_EQ(d.slots[4].branch.parent, 5);
  EXPECT_EQ(d.slots[4].branch.begin, 2);
  EXPECT_EQ(d.slots[4].num_draft_tokens, 2);
  EXPECT_EQ(Ids(d.slots[4].drafts, d.slots[4].drafts + 2), (Ids{60, 61}));
}

TEST_F(BranchDraftsTest, NoneBeginsWhereItCannotOrHardlyEverWins) {
  struct {
    const char* why;
    int min_chance, max_branches;
    uint64_t grammar;
    int32_t drafted, wanted;
  } const cases[] = {{"nothing is against it", 100, 3, 0, 30, 1},
                     {"it is too unlikely", 9001, 3, 0, 30, 0},
                     {"a grammar", 100, 3, 5, 30, 0},
                     {"no draft", 100, 3, 0, -1, 0}};
  for (const auto& c : cases) {
    StepData d = new_data();
    d.params[0].grammar = c.grammar;
    const Found found = run(d, {.slots = {0},
                                .rows = {{{c.drafted, 40000}, {31, 9000}}},
                                .max_branches = c.max_branches,
                                .min_chance = c.min_chance});
    EXPECT_EQ(found.num_rows, 1 + c.wanted) << c.why;
  }
}

TEST_F(BranchDraftsTest, OnesThatFollowDraftsOfOthersStay) {
  StepData d = new_data();
  // Slot 3 has no span in this step: its drafts and their branch wait for the next one.
  d.slots[3].branch.stamp = 4;
  d.slots[4].branch = {.stamp = 4, .chance = 7, .leader = 3, .parent = 3};
  // Of drafts that slot 2 has verified since.
  d.slots[5].branch = {.stamp = 4, .chance = 7, .leader = 2, .parent = 2};
  const Found found =
      run(d, {.slots = {0}, .rows = {{{30, 40000}, {31, 9000}, {32, 8000}, {33, 7000}}}});
  EXPECT_EQ(found.slots, (Ids{0, 5, 6}));
  EXPECT_EQ(d.slots[4].branch.stamp, 4);
  EXPECT_EQ(d.slots[4].branch.chance, 7);
}

}  // namespace
}  // namespace foretoken
