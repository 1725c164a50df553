#include "kernels/step/copy_branches.h"

#include "support/step_data.h"

namespace foretoken {
namespace {

// Slots 4 and 5 are branches, with two blocks each behind those of all slots. Byte b of block n is
// n + b at first, cut to a byte.
class CopyBranchesTest : public StepTest {
 protected:
  static constexpr int kBlocks = 1 + 6 * 8 + 4;
  static constexpr int kOwn = 1 + 6 * 8;  // the first branch's
  static constexpr int kWindow = 100;     // blocks of window tables lie so much further

  static StepData new_data() {
    StepSizes sizes;
    sizes.num_slots = 6;
    sizes.num_branches = 2;
    sizes.branch_blocks = 2;
    StepData d(sizes);
    d.header.step = 8;
    d.slots[1].len = 7;
    return d;
  }
  static void follow(StepData& d, int slot, int parent, int begin, int number) {
    d.slots[slot].len = 7;
    d.slots[slot].branch = {.stamp = 9, .chance = 0, .leader = 1, .parent = parent, .begin = begin};
    d.slots[1].branch.stamp = 9;
    for (int i = 0; i < 2; ++i) {
      d.block_tables[slot * 8 + 1 + i] = kOwn + 2 * number + i;
      d.window_tables[slot * 8 + 1 + i] = kOwn + 2 * number + i;
    }
  }
  BlockPart part_of(int64_t bytes, int num_blocks) {
    std::vector<uint8_t> values(static_cast<size_t>(num_blocks * bytes));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] =
          static_cast<uint8_t>(static_cast<int64_t>(i) / bytes + static_cast<int64_t>(i) % bytes);
    }
    return {reinterpret_cast<std::byte*>(to_device(values)), bytes};
  }
  void run(StepData& d, int pass) {
    push(d);
    full_ = {part_of(4096, kBlocks), part_of(36, kBlocks), part_of(7, kBlocks)};
    windowed_ = {part_of(64, kWindow + kBlocks)};
    copy_branches(queue(), {.plan = plan_,
                            .limits = sizes_.limits,
                            .batch = batch_,
                            .counts = tensors_.counts,
                            .spans = tensors_.spans,
                            .full = {to_device(full_), 3},
                            .windowed = {to_device(windowed_), 1},
                            .pass = pass});
    pull(d);
  }
  // Which block's bytes a block holds; all parts must agree.
  int holds(int block) {
    int found = -1;
    for (const BlockPart& part : full_) {
      const std::vector<uint8_t> all =
          read(reinterpret_cast<uint8_t*>(part.base), static_cast<size_t>(part.bytes * kBlocks));
      const auto at = static_cast<size_t>(block * part.bytes);
      EXPECT_EQ(all[at + 6], static_cast<uint8_t>(all[at] + 6));
      EXPECT_EQ(all[at + static_cast<size_t>(part.bytes) - 1],
                static_cast<uint8_t>(all[at] + part.bytes - 1));
      if (found < 0) found = all[at];
      EXPECT_EQ(found, all[at]);
    }
    return found;
  }
  int window_holds(int block) {
    return read(reinterpret_cast<uint8_t*>(windowed_[0].base),
                static_cast<size_t>(64 * (kWindow + kBlocks)))[static_cast<size_t>(64 * block)];
  }

  std::vector<BlockPart> full_, windowed_;
};

// Position 6 is the last known one, in block 1 of the table, and draft 1 at position 8 in block 2.
TEST_F(CopyBranchesTest, ABranchBeginsWithWhatItsParentHas) {
  StepData d = new_data();
  follow(d, 4, 1, 2, 0);
  follow(d, 5, 4, 0, 1);  // began two passes before
  const int own = d.block_tables[8 + 1], next = d.block_tables[8 + 2];
  run(d, 2);
  EXPECT_EQ(holds(kOwn), own);
  EXPECT_EQ(holds(kOwn + 1), next) << "the drafter has written position 8";
  EXPECT_EQ(holds(kOwn + 2), kOwn + 2) << "of the other branch nothing is copied";
  EXPECT_EQ(window_holds(kOwn), own + kWindow);
  EXPECT_EQ(d.block_tables[4 * 8], d.block_tables[8]) << "whole blocks before are shared";
  EXPECT_EQ(d.block_tables[4 * 8 + 1], kOwn);
  EXPECT_EQ(d.window_tables[4 * 8], d.window_tables[8]);
}

TEST_F(CopyBranchesTest, OnlyWhatIsWrittenIsCopied) {
  StepData d = new_data();
  follow(d, 4, 1, 1, 0);
  run(d, 1);
  EXPECT_EQ(holds(kOwn), d.block_tables[8 + 1]);
  EXPECT_EQ(holds(kOwn + 1), kOwn + 1) << "positions 6 and 7 are both in the first block";
}

TEST_F(CopyBranchesTest, ASequenceTakesWhatItsWinnerHas) {
  for (const bool verified : {true, false}) {
    StepData d = new_data();
    follow(d, 5, 1, 0, 1);
    d.slots[1].len = 10;
    d.slots[1].branch = {.stamp = 0, .winner = 5, .winner_begin = 6};
    d.counts.num_spans = 1;
    d.counts.num_branches = verified ? 1 : 0;
    d.span_states[1].slot = 5;
    const int first = d.block_tables[8 + 1], second = d.block_tables[8 + 2];
    run(d, -1);
    EXPECT_EQ(holds(first), verified ? kOwn + 2 : first);
    EXPECT_EQ(holds(second), verified ? kOwn + 3 : second);
    EXPECT_EQ(holds(d.block_tables[8]), d.block_tables[8]);
    EXPECT_EQ(window_holds(first + kWindow), verified ? kOwn + 2 : first + kWindow);
  }
}

}  // namespace
}  // namespace foretoken
