#include "kernels/draft_entries.h"

#include "support/step_data.h"

namespace foretoken {
namespace {

// Host functions, on host data: blocks of four positions.
struct DraftEntries : testing::Test {
  DraftEntries() {
    batch.block_tables = d.block_tables.data();
    batch.page_headers = d.page_headers.data();
    batch.max_blocks = d.sizes.max_blocks;
    batch.block_size = d.sizes.block_size;
    batch.num_slots = d.sizes.num_slots;
  }
  int16_t& count(int slot, int block, int drafter) {
    return d.page_header(slot, block * 4).draft_counts[drafter];
  }
  StepData d{StepSizes{}};
  BatchState batch{};
};

TEST_F(DraftEntries, KvSlotsFollowTheBlockTable) {
  for (const int position : {0, 3, 4, 30}) {
    EXPECT_EQ(kv_slot_at(batch, 2, position), d.kv_slot_of(2, position));
  }
}

TEST_F(DraftEntries, ExactEntriesEndInTheFirstBlockThatIsNotFull) {
  count(1, 0, 2) = 4;
  count(1, 1, 2) = 4;
  count(1, 2, 2) = 3;
  count(1, 3, 2) = 4;
  EXPECT_EQ(exact_entries(batch, 1, 2, 0, 30), 11);
  EXPECT_EQ(exact_entries(batch, 1, 2, 0, 10), 10);
  EXPECT_EQ(exact_entries(batch, 1, 2, 0, 8), 8);
  EXPECT_EQ(exact_entries(batch, 1, 2, 0, 0), 0);
  EXPECT_EQ(exact_entries(batch, 1, 2, 9, 30), 11);
  EXPECT_EQ(exact_entries(batch, 1, 2, 11, 30), 11);
  EXPECT_EQ(exact_entries(batch, 1, 2, 12, 30), 16) << "those before 12 are the caller's word";
  EXPECT_EQ(exact_entries(batch, 1, 1, 0, 30), 0) << "another drafter";
  EXPECT_EQ(exact_entries(batch, 1, 1, 5, 30), 5);
}

TEST_F(DraftEntries, RaisingFillsTheBlocksAndNeverLowers) {
  raise_draft_counts(batch, 0, 1, 3, 10);
  EXPECT_EQ(count(0, 0, 1), 4);
  EXPECT_EQ(count(0, 1, 1), 4);
  EXPECT_EQ(count(0, 2, 1), 2);
  EXPECT_EQ(count(0, 3, 1), 0);
  EXPECT_EQ(count(0, 0, 0), 0);
  raise_draft_counts(batch, 0, 1, 0, 5);
  EXPECT_EQ(count(0, 1, 1), 4);
  raise_draft_counts(batch, 0, 1, 10, 10);
  EXPECT_EQ(count(0, 2, 1), 2);
  raise_draft_counts(batch, 0, 1, 14, 14);
  raise_draft_counts(batch, 0, 1, 15, 14);
  EXPECT_EQ(count(0, 3, 1), 0) << "no entries, no change";
  EXPECT_EQ(exact_entries(batch, 0, 1, 0, 30), 10);
}

TEST_F(DraftEntries, KnownTokensAreThoseSampledOrComputed) {
  SlotState state{};
  state.len = 9;
  state.computed = 5;
  SpanState span{};
  span.num_logits = span.num_scored = 2;
  EXPECT_FALSE(has_sampled(span));
  EXPECT_EQ(known_after(span, state), 5);
  span.num_logits = 3;
  EXPECT_TRUE(has_sampled(span));
  EXPECT_EQ(known_after(span, state), 9);
}

}  // namespace
}  // namespace foretoken
