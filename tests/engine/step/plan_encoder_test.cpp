#include "engine/step/plan_encoder.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/request/request_state.h"
#include "kernels/plan_layout.h"

namespace foretoken {
namespace {

constexpr PlanLimits kLimits{
    .max_spans = 4, .max_tokens = 16, .max_block_updates = 8, .max_words = 8};

class PlanEncoder : public testing::Test {
 protected:
  PlanEncoder() : bytes_(static_cast<size_t>(plan_bytes(kLimits)) / 8 + 1, 0), pool_(8) {
    entry_ = plan_view(bytes_.data(), kLimits);
  }

  static void fill(RequestState& request, int slot, int known) {
    request.sequence.owner = &request;
    request.sequence.slot = slot;
    for (int i = 0; i < known; ++i) request.sequence.tokens.push_back(100 * slot + i);
  }

  std::vector<uint64_t> bytes_;
  BlockPool pool_;
  PlanView entry_;
};

TEST_F(PlanEncoder, WritesChunksDecodesInitsAndBlocks) {
  RequestState first;
  fill(first, 2, 10);
  first.params.seed = 77;
  RequestState second;
  fill(second, 1, 5);
  const BlockId fresh = pool_.allocate();
  StepPlan plan;
  plan.step = 9;
  plan.spans = {{.sequence = &first.sequence,
                 .num_tokens = 4,
                 .first_new_id = 4,
                 .is_first = true,
                 .num_hit_tokens = 4},
                {.sequence = &second.sequence,
                 .num_tokens = 1,
                 .max_verified = 3,
                 .samples = true,
                 .num_draft_tokens = 5,
                 .draft_rows = 4}};
  plan.blocks = {{2, 0, 5, false}, {2, 1, fresh, true}};
  plan.num_rows = 8;
  plan.num_new_ids = 4;
  encode_plan(plan, pool_, kLimits, entry_);

  EXPECT_EQ(entry_.header->step, 9u);
  EXPECT_EQ(entry_.header->num_spans, 2);
  EXPECT_EQ(entry_.header->num_inits, 1);
  EXPECT_EQ(entry_.header->num_block_updates, 2);
  EXPECT_EQ(entry_.header->num_tokens, 4);
  EXPECT_EQ(entry_.spans[0].slot, 2);
  EXPECT_EQ(entry_.spans[0].num_new_ids, 4);
  EXPECT_EQ(entry_.spans[0].write_position, 4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(entry_.tokens[i], 204 + i);
  EXPECT_EQ(entry_.inits[0].slot, 2);
  EXPECT_EQ(entry_.inits[0].len, 10);
  EXPECT_EQ(entry_.inits[0].computed, 4);
  EXPECT_EQ(entry_.inits[0].params.seed, 77u);
  EXPECT_EQ(entry_.spans[1].slot, 1);
  EXPECT_EQ(entry_.spans[1].num_tokens, 1);
  EXPECT_EQ(entry_.spans[1].max_verified, 3);
  EXPECT_EQ(entry_.spans[1].num_draft_tokens, 5);
  EXPECT_EQ(entry_.spans[1].draft_rows, 4);
  EXPECT_EQ(entry_.spans[0].num_draft_tokens, 0);
  EXPECT_EQ(entry_.spans[0].draft_rows, 0);
  EXPECT_EQ(entry_.spans[1].num_new_ids, 0);
  EXPECT_EQ(entry_.block_updates[0].block, 5);
  EXPECT_EQ(entry_.block_updates[0].epoch, 0u);
  EXPECT_EQ(entry_.block_updates[1].block, fresh);
  EXPECT_EQ(entry_.block_updates[1].epoch, pool_.epoch(fresh));
  EXPECT_EQ(entry_.block_updates[1].windowed, 0);
  EXPECT_EQ(entry_.spans[0].wants_all, 0);
  EXPECT_EQ(entry_.header->num_words, 0);
}

TEST_F(PlanEncoder, WindowedBlocksRestartNoPage) {
  RequestState request;
  fill(request, 1, 3);
  StepPlan plan;
  plan.spans = {{.sequence = &request.sequence, .num_tokens = 1, .samples = true}};
  plan.blocks = {{.slot = 1, .index = 6, .block = 3, .fresh = true, .windowed = true},
                 {.slot = 1, .index = 5, .block = 2, .fresh = false, .windowed = true}};
  encode_plan(plan, pool_, kLimits, entry_);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(entry_.block_updates[i].windowed, 1);
    EXPECT_EQ(entry_.block_updates[i].epoch, 0u);
    EXPECT_EQ(entry_.block_updates[i].index, 6 - i);
    EXPECT_EQ(entry_.block_updates[i].block, 3 - i);
  }
}

TEST_F(PlanEncoder, WordsFollowTheirInitsAndScoredSpansAreMarked) {
  RequestState first;
  fill(first, 0, 4);
  first.init_words = {7, 8, 9};
  RequestState second;
  fill(second, 1, 4);
  second.init_words = {5, 6};
  StepPlan plan;
  plan.spans = {{.sequence = &first.sequence, .num_tokens = 1, .first_new_id = 0, .is_first = true},
                {.sequence = &second.sequence,
                 .num_tokens = 2,
                 .first_new_id = 0,
                 .is_first = true,
                 .wants_all = true}};
  plan.num_new_ids = 3;
  plan.num_words = 5;
  encode_plan(plan, pool_, kLimits, entry_);
  EXPECT_EQ(entry_.header->num_words, 5);
  EXPECT_EQ(entry_.inits[0].word_offset, 0);
  EXPECT_EQ(entry_.inits[1].word_offset, 3);
  const std::vector<uint32_t> words(entry_.words, entry_.words + 5);
  EXPECT_EQ(words, (std::vector<uint32_t>{7, 8, 9, 5, 6}));
  EXPECT_EQ(entry_.spans[0].wants_all, 0);
  EXPECT_EQ(entry_.spans[1].wants_all, 1);
}

TEST_F(PlanEncoder, UploadsFollowOneAnother) {
  RequestState first;
  fill(first, 0, 3);
  RequestState second;
  fill(second, 3, 2);
  StepPlan plan;
  plan.spans = {{.sequence = &first.sequence, .num_tokens = 3, .first_new_id = 0},
                {.sequence = &second.sequence, .num_tokens = 2, .first_new_id = 0}};
  plan.num_new_ids = 5;
  encode_plan(plan, pool_, kLimits, entry_);
  EXPECT_EQ(entry_.spans[0].token_offset, 0);
  EXPECT_EQ(entry_.spans[1].token_offset, 3);
  EXPECT_EQ(entry_.tokens[3], 300);
}

TEST_F(PlanEncoder, RefusesWhatTheEntryCannotHold) {
  RequestState request;
  fill(request, 0, 1);
  StepPlan plan;
  plan.spans.assign(5, {.sequence = &request.sequence, .num_tokens = 1});
  EXPECT_DEATH(encode_plan(plan, pool_, kLimits, entry_), "max_spans");
}

}  // namespace
}  // namespace foretoken
