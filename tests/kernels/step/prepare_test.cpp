#include "kernels/step/prepare.h"

#include <random>

#include "support/step_data.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

class PrepareTest : public StepTest {
 protected:
  void run(StepData& data) {
    push(data);
    prepare(queue(), prepare_args());
    pull(data);
  }
  static Ids head(const Ids& ids, int count) { return {ids.begin(), ids.begin() + count}; }
  static void expect_padding(const StepData& d) {
    for (int r = d.counts.num_rows; r < d.sizes.max_rows; ++r) {
      ASSERT_EQ(d.token_ids[r], 0);
      ASSERT_EQ(d.positions[r], 0);
      ASSERT_EQ(d.row_slot[r], d.sizes.num_slots);
      ASSERT_EQ(d.kv_slot[r], 0);
      ASSERT_EQ(d.window_slot[r], 0);
    }
  }
};

TEST_F(PrepareTest, PacksPrefillDecodeAndDrafts) {
  StepData d{StepSizes{}};
  d.set_sequence(0, {10, 11, 12, 13, 14, 15}, 1);  // a chunk that does not reach the end
  d.set_sequence(1, {20, 21, 22}, 2);              // decode with two drafts
  d.set_drafts(1, {23, 24});
  d.set_sequence(2, {30, 31, 32}, 0);  // the last chunk of a prompt
  d.add_span(0, 3, 0);
  d.add_span(1, 1, 5);
  d.add_span(2, 8, 4);
  run(d);
  EXPECT_EQ(d.counts.num_rows, 9);
  EXPECT_EQ(d.counts.num_logits_rows, 4);
  EXPECT_EQ(d.counts.num_spans, 3);
  EXPECT_EQ(head(d.token_ids, 9), (Ids{11, 12, 13, 22, 23, 24, 30, 31, 32}));
  EXPECT_EQ(head(d.positions, 9), (Ids{1, 2, 3, 2, 3, 4, 0, 1, 2}));
  EXPECT_EQ(head(d.row_slot, 9), (Ids{0, 0, 0, 1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(head(d.logits_rows, 4), (Ids{3, 4, 5, 8}));
  for (int r = 0; r < 9; ++r) {
    const int block = d.block_tables[d.row_slot[r] * d.sizes.max_blocks + d.positions[r] / 4];
    EXPECT_EQ(d.kv_slot[r], block * 4 + d.positions[r] % 4) << r;
    EXPECT_EQ(d.window_slot[r], (block + 100) * 4 + d.positions[r] % 4) << r;
  }
  EXPECT_EQ(d.span_states[0].num_logits, 0);
  EXPECT_EQ(d.span_states[1].row_begin, 3);
  EXPECT_EQ(d.span_states[1].num_rows, 3);
  EXPECT_EQ(d.span_states[1].num_draft_tokens, 2);
  EXPECT_EQ(d.span_states[1].logits_begin, 0);
  EXPECT_EQ(d.span_states[1].num_logits, 3);
  EXPECT_EQ(d.span_states[2].logits_begin, 3);
  expect_padding(d);
}

TEST_F(PrepareTest, WithoutWindowedLayersNoWindowSlots) {
  StepData d{StepSizes{}};
  d.set_sequence(0, {1, 2, 3}, 0);
  d.add_span(0, 3, 0);
  push(d);
  PrepareArgs args = prepare_args();
  args.batch.window_tables = nullptr;
  args.tensors.window_slot = nullptr;
  prepare(queue(), args);
  pull(d);
  EXPECT_EQ(d.counts.num_rows, 3);
  for (const int32_t slot : d.window_slot) EXPECT_EQ(slot, -5);
}

TEST_F(PrepareTest, WantsAllScoresTheRowsWhoseNextTokenIsKnown) {
  StepData d{StepSizes{}};
  d.set_sequence(0, {10, 11, 12, 13, 14, 15}, 1);  // a chunk that does not reach the end
  d.set_sequence(1, {20, 21, 22}, 0);              // the end, and drafts
  d.set_drafts(1, {23, 24});
  d.set_sequence(2, {30, 31}, 1);  // nothing to score
  d.add_span(0, 3, 0);
  d.add_span(1, 8, 5);
  d.add_span(2, 1, 5);
  for (SpanPlan& span : d.spans) span.wants_all = 1;
  run(d);
  EXPECT_EQ(d.counts.num_rows, 3 + 5 + 1);
  EXPECT_EQ(d.counts.num_logits_rows, 3 + 5 + 1);
  EXPECT_EQ(head(d.logits_rows, 9), (Ids{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(d.span_states[0].num_logits, 3);
  EXPECT_EQ(d.span_states[0].num_scored, 3);
  EXPECT_EQ(d.span_states[0].num_draft_tokens, 0);
  EXPECT_EQ(d.span_states[1].logits_begin, 3);
  EXPECT_EQ(d.span_states[1].num_logits, 5);
  EXPECT_EQ(d.span_states[1].num_scored, 2);
  EXPECT_EQ(d.span_states[1].num_draft_tokens, 2);
  EXPECT_EQ(d.span_states[2].num_logits, 1);
  EXPECT_EQ(d.span_states[2].num_scored, 0);
}

TEST_F(PrepareTest, WantsAllCountsAgainstTheLogitsRows) {
  StepSizes sizes;
  sizes.max_logits_rows = 4;
  StepData d{sizes};
  d.set_sequence(0, {1, 2, 3, 4, 5}, 0);
  d.set_sequence(1, {6, 7, 8, 9}, 0);
  d.add_span(0, 5, 0);
  d.add_span(1, 4, 0);
  for (SpanPlan& span : d.spans) span.wants_all = 1;
  run(d);
  EXPECT_EQ(d.span_states[0].num_rows, 0);
  EXPECT_EQ(d.span_states[0].num_scored, 0);
  EXPECT_EQ(d.span_states[1].num_rows, 4);
  EXPECT_EQ(d.span_states[1].num_scored, 3);
  EXPECT_EQ(d.counts.num_logits_rows, 4);
}

TEST_F(PrepareTest, PoolingSlotsGetNeitherDraftsNorLogits) {
  StepData d{StepSizes{}};
  d.set_sequence(0, {1, 2, 3}, 0);
  d.set_drafts(0, {4, 5});
  d.params[0].pooling = static_cast<int32_t>(DevicePooling::kMean);
  d.set_sequence(1, {6}, 0);
  d.add_span(0, 3, 5);
  d.add_span(1, 1, 5);
  d.spans[0].wants_all = 1;
  run(d);
  EXPECT_EQ(d.span_states[0].num_rows, 3);
  EXPECT_EQ(d.span_states[0].num_logits, 0);
  EXPECT_EQ(d.span_states[0].num_draft_tokens, 0);
  EXPECT_EQ(d.counts.num_logits_rows, 1);
  EXPECT_EQ(head(d.token_ids, 4), (Ids{1, 2, 3, 6}));
}

TEST_F(PrepareTest, TrimsDraftsToTheGrant) {
  StepData d{StepSizes{}};
  d.set_sequence(0, {1, 2, 3}, 2);
  d.set_drafts(0, {4, 5, 6, 7});
  d.add_span(0, 1, 2);
  run(d);
  EXPECT_EQ(d.counts.num_rows, 3);
  EXPECT_EQ(d.span_states[0].num_draft_tokens, 2);
  EXPECT_EQ(head(d.token_ids, 3), (Ids{3, 4, 5}));
}

TEST_F(PrepareTest, FinishedSlotsGetNoRows) {
  StepData d{StepSizes{}};
  d.set_sequence(0, {1, 2, 3}, 2);
  d.slots[0].finished = static_cast<int32_t>(DeviceFinish::kStop);
  d.set_sequence(1, {4}, 0);
  d.add_span(0, 1, 2);
  d.add_span(1, 1, 2);
  run(d);
  EXPECT_EQ(d.counts.num_rows, 1);
  EXPECT_EQ(d.counts.num_logits_rows, 1);
  EXPECT_EQ(d.span_states[0].num_rows, 0);
  EXPECT_EQ(d.span_states[0].num_logits, 0);
  EXPECT_EQ(d.token_ids[0], 4);
}

TEST_F(PrepareTest, SpansThatDoNotFitGetNoRows) {
  StepSizes sizes;
  sizes.max_rows = 5;
  sizes.max_logits_rows = 2;
  StepData d{sizes};
  d.set_sequence(0, {1, 2, 3, 4}, 0);
  d.set_sequence(1, {5, 6, 7}, 0);  // three more rows than there are
  d.set_sequence(2, {8}, 0);        // fits
  d.set_sequence(3, {9}, 0);        // a third logits row
  for (int s = 0; s < 4; ++s) d.add_span(s, 8, 4);
  run(d);
  EXPECT_EQ(d.counts.num_rows, 5);
  EXPECT_EQ(d.counts.num_logits_rows, 2);
  EXPECT_EQ(head(d.token_ids, 5), (Ids{1, 2, 3, 4, 8}));
  EXPECT_EQ(d.span_states[1].num_rows, 0);
  EXPECT_EQ(d.span_states[3].num_rows, 0);
}

// The spans of each lane are packed for themselves; logits rows are in the order of all spans.
TEST_F(PrepareTest, TwoLanesHaveTheRowsOfWholeSpans) {
  constexpr int kLaneRows = 8, kOffset = 16;
  StepData d{StepSizes{}};
  d.set_sequence(0, {10, 11, 12}, 2);
  d.set_drafts(0, {13});
  d.set_sequence(1, {20, 21}, 0);
  d.set_sequence(2, {30, 31, 32}, 2);
  d.set_drafts(2, {33, 34});
  d.set_sequence(3, {40}, 0);
  for (int s = 0; s < 4; ++s) d.add_span(s, 8, 4);
  d.header.lane_spans = 2;
  push(d);
  PrepareArgs args = prepare_args();
  args.max_rows = 16;
  args.lane_rows = kLaneRows;
  args.lane_offset = kOffset;
  prepare(queue(), args);
  pull(d);
  EXPECT_EQ(d.counts.num_rows, 8);
  EXPECT_EQ(d.counts.num_logits_rows, 2 + 1 + 3 + 1);
  EXPECT_EQ(d.counts.num_spans, 4);
  EXPECT_EQ(d.lane_counts[0].num_rows, 4);
  EXPECT_EQ(d.lane_counts[1].num_rows, 4);
  EXPECT_EQ(d.lane_counts[0].num_logits_rows, 0);
  EXPECT_EQ(head(d.token_ids, kLaneRows), (Ids{12, 13, 20, 21, 0, 0, 0, 0}));
  const Ids second(d.token_ids.begin() + kOffset, d.token_ids.begin() + kOffset + kLaneRows);
  EXPECT_EQ(second, (Ids{32, 33, 34, 40, 0, 0, 0, 0}));
  EXPECT_EQ(d.token_ids[kLaneRows], -5) << "between the lanes nothing is written";
  EXPECT_EQ(d.row_slot[kOffset + 3], 3);
  EXPECT_EQ(d.row_slot[kOffset + 4], d.sizes.num_slots);
  EXPECT_EQ(d.positions[kOffset + 2], 4);
  EXPECT_EQ(d.kv_slot[kOffset + 2], d.kv_slot_of(2, 4));
  EXPECT_EQ(head(d.logits_rows, 7), (Ids{0, 1, 3, kOffset, kOffset + 1, kOffset + 2, kOffset + 3}));
  EXPECT_EQ(d.span_states[1].row_begin, 2);
  EXPECT_EQ(d.span_states[2].row_begin, kOffset);
  EXPECT_EQ(d.span_states[3].row_begin, kOffset + 3);
}

TEST_F(PrepareTest, ALaneMayBeEmptyAndNoSpanOutgrowsIts) {
  StepData d{StepSizes{}};
  d.set_sequence(0, {1, 2, 3}, 0);
  d.set_sequence(1, {4, 5, 6}, 0);
  d.add_span(0, 3, 0);
  d.add_span(1, 3, 0);
  push(d);
  PrepareArgs args = prepare_args();
  args.lane_rows = 4;
  args.lane_offset = 16;
  for (const int first : {0, 1, 2}) {
    d.header.lane_spans = first;
    push(d);
    args.plan = prepare_args().plan;
    args.batch = prepare_args().batch;
    args.tensors = prepare_args().tensors;
    prepare(queue(), args);
    pull(d);
    // Six rows do not go into four.
    const bool fits = first == 1;
    EXPECT_EQ(d.counts.num_rows, fits ? 6 : 3) << first;
    EXPECT_EQ(d.lane_counts[0].num_rows, first > 0 ? 3 : 0) << first;
    EXPECT_EQ(d.lane_counts[1].num_rows, first < 2 ? 3 : 0) << first;
    EXPECT_EQ(d.token_ids[16], first == 0 ? 1 : first == 1 ? 4 : 0) << first;
  }
}

TEST_F(PrepareTest, EmptyPlanIsAllPadding) {
  StepData d{StepSizes{}};
  run(d);
  EXPECT_EQ(d.counts.num_rows, 0);
  EXPECT_EQ(d.counts.num_logits_rows, 0);
  expect_padding(d);
}

}  // namespace
}  // namespace foretoken
