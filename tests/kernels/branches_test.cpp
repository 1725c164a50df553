#include "kernels/branches.h"

#include "support/step_data.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

// Slots 4 and 5 are branches; prepare and verify_and_commit with them.
class BranchesTest : public StepTest {
 protected:
  static constexpr int32_t kStamp = 7;

  static StepData new_data() {
    StepSizes sizes;
    sizes.num_slots = 6;
    sizes.num_branches = 2;
    sizes.branch_blocks = 2;
    return StepData(sizes);
  }
  // Slot 1 knows 6 tokens, 100 to 105, and has drafts.
  static void add_leader(StepData& d, const Ids& drafts) {
    d.set_sequence(1, {100, 101, 102, 103, 104, 105}, 5);
    d.set_drafts(1, drafts);
    d.slots[1].branch.stamp = kStamp;
    d.add_span(1, 1, kMaxDraftTokens);
  }
  static void add_branch(StepData& d, int slot, const Ids& drafts, int32_t stamp = kStamp) {
    d.slots[slot].len = 6;
    d.slots[slot].computed = 5;
    d.set_drafts(slot, drafts);
    d.slots[slot].branch = {.stamp = stamp, .chance = 0, .leader = 1, .parent = 1};
    d.params[slot] = d.params[1];
    d.block_tables[slot * d.sizes.max_blocks + 1] = 200 + slot;
  }
  void run(StepData& d, const Ids& sampled) {
    push(d);
    prepare(queue(), prepare_args());
    write(tensors_.sampled, sampled);
    verify_and_commit(queue(), verify_and_commit_args());
    pull(d);
  }
  static Ids committed(const StepData& d) {
    return Ids(d.results[0].ids, d.results[0].ids + d.results[0].num_committed);
  }
};

TEST_F(BranchesTest, HaveRowsBehindAllSpans) {
  StepData d = new_data();
  add_leader(d, {50, 51});
  d.set_sequence(0, {1, 2, 3}, 2);
  d.add_span(0, 1, 0);
  add_branch(d, 4, {60, 61});
  add_branch(d, 5, {50, 71});
  d.header.num_branches = 2;
  run_prepare(d);
  EXPECT_EQ(d.counts.num_spans, 2);
  EXPECT_EQ(d.counts.num_branches, 2);
  EXPECT_EQ(d.counts.num_rows, 3 + 1 + 3 + 3);
  EXPECT_EQ(d.counts.num_logits_rows, 10);
  EXPECT_EQ(Ids(d.token_ids.begin(), d.token_ids.begin() + 10),
            (Ids{105, 50, 51, 3, 105, 60, 61, 105, 50, 71}));
  EXPECT_EQ(Ids(d.row_slot.begin(), d.row_slot.begin() + 10), (Ids{1, 1, 1, 0, 4, 4, 4, 5, 5, 5}));
  EXPECT_EQ(Ids(d.positions.begin() + 4, d.positions.begin() + 7), (Ids{5, 6, 7}));
  EXPECT_EQ(d.kv_slot[4], 204 * 4 + 1) << "the branch's own block";
}

TEST_F(BranchesTest, HaveNoneWhereTheirLeaderHasOtherDraftsOrThePlanHasNoRoom) {
  struct {
    int32_t stamp, num_branches, wanted;
    Ids drafts;
  } const cases[] = {{kStamp, 1, 1, {50}},
                     {kStamp, 0, 0, {50}},
                     {kStamp - 1, 2, 0, {50}},
                     {0, 2, 0, {50}},
                     {kStamp, 2, 0, {}}};
  for (const auto& c : cases) {
    StepData d = new_data();
    add_leader(d, c.drafts);
    add_branch(d, 4, {60}, c.stamp);
    add_branch(d, 5, {61}, c.stamp);
    d.header.num_branches = c.num_branches;
    run_prepare(d);
    EXPECT_EQ(d.counts.num_branches, c.wanted) << c.stamp << " " << c.num_branches;
  }
}

TEST_F(BranchesTest, TheLongestIsTaken) {
  struct {
    Ids sampled;  // of the slot, of branch 4, of branch 5
    Ids ids;
    int32_t winner, by_branch, logits_begin, computed;
  } const cases[] = {
      {{50, 51, 9, 50, 51, 9, 50, 51, 9}, {50, 51, 9}, 0, 0, 0, 8},   // its own drafts
      {{60, 1, 2, 60, 61, 8, 60, 1, 2}, {60, 61, 8}, 1, 2, 3, 8},     // branch 4
      {{50, 71, 2, 50, 1, 8, 50, 71, 33}, {50, 71, 33}, 2, 1, 6, 8},  // branch 5: one more
      {{9, 1, 2, 9, 1, 8, 9, 1, 2}, {9}, 0, 0, 0, 6},                 // none
  };
  for (const auto& c : cases) {
    StepData d = new_data();
    add_leader(d, {50, 51});
    add_branch(d, 4, {60, 61});
    add_branch(d, 5, {50, 71});
    d.header.num_branches = 2;
    for (const int slot : {1, 4, 5}) {
      d.slots[slot].draft.computed = 6;
      d.slots[slot].draft.written = 8;
    }
    run(d, c.sampled);
    EXPECT_EQ(committed(d), c.ids);
    EXPECT_EQ(d.results[0].num_branches, 2);
    EXPECT_EQ(d.results[0].winner, c.winner);
    EXPECT_EQ(d.results[0].num_by_branch, c.by_branch);
    EXPECT_EQ(d.results[0].logits_begin, c.logits_begin);
    EXPECT_EQ(d.results[0].num_drafted, 2);
    EXPECT_EQ(d.results[0].num_accepted, static_cast<int>(c.ids.size()) - 1);
    EXPECT_EQ(d.slots[1].branch.stamp, 0) << "its drafts are gone";
    EXPECT_EQ(d.slots[1].branch.winner, c.winner == 0 ? 0 : 3 + c.winner);
    EXPECT_EQ(d.slots[1].draft.computed, c.computed);
    EXPECT_EQ(d.tokens(1).back(), c.ids.back());
    EXPECT_EQ(d.slots[1].branch.winner_begin, c.winner != 0 ? 5 : 0);
  }
}

// More drafts than its leader's would count as accepted ones that nobody had.
TEST_F(BranchesTest, NoneIsLongerThanTheSlotsOwnDrafts) {
  StepData d = new_data();
  add_leader(d, {50});
  add_branch(d, 4, {60, 61});
  d.header.num_branches = 2;
  run(d, {60, 1, 60, 61, 8});
  EXPECT_EQ(committed(d), (Ids{60, 61}));
  EXPECT_EQ(d.results[0].num_accepted, 1);
}

TEST_F(BranchesTest, AStopIdEndsTheSequenceWhoeverHadIt) {
  StepData d = new_data();
  add_leader(d, {50, 51});
  add_branch(d, 4, {60, 61});
  d.params[1].num_stop_ids = 1;
  d.params[1].stop_ids[0] = 60;
  d.header.num_branches = 1;
  run(d, {60, 1, 2, 60, 61, 8});
  EXPECT_EQ(committed(d), (Ids{60}));
  EXPECT_EQ(d.results[0].finish, static_cast<int32_t>(DeviceFinish::kStop));
  EXPECT_EQ(d.results[0].num_by_branch, 1);
}

TEST_F(BranchesTest, SlotsAreTheirs) {
  BatchState batch{};
  std::vector<SlotState> slots(7);
  slots[4].branch.leader = 2;
  batch.slots = slots.data();
  batch.num_slots = 6;
  batch.num_branches = 2;
  batch.branch_blocks = 3;
  batch.first_branch_block = 100;
  batch.first_branch_window_block = 50;
  EXPECT_FALSE(is_branch(batch, 3));
  EXPECT_TRUE(is_branch(batch, 4));
  EXPECT_FALSE(is_branch(batch, 6)) << "the null slot";
  EXPECT_EQ(text_slot(batch, 4), 2);
  EXPECT_EQ(text_slot(batch, 3), 3);
  EXPECT_EQ(own_block(batch, 5, 2, false), 105);
  EXPECT_EQ(own_block(batch, 4, 1, true), 51);
}

}  // namespace
}  // namespace foretoken
