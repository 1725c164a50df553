#include "kernels/step/plan_check.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

// tests/kernels/step/upload_test.cpp damages a plan part by part; here are the edges.
struct PlanCheck : testing::Test {
  PlanCheck() {
    batch.num_slots = 3;
    batch.max_blocks = 4;
    batch.block_size = 8;
    batch.lists = {&bias, &ints, &mask, 5, 3, &ints};
    header.num_tokens = 10;
    header.num_words = 20;
  }
  LogitBias bias{};
  int32_t ints = 0;
  uint32_t mask = 0;
  BatchState batch{};
  PlanHeader header{};
};

TEST_F(PlanCheck, HeaderWithinItsLimits) {
  const PlanLimits limits{2, 3, 4, 5};
  EXPECT_TRUE(is_valid_header({0, 2, 2, 4, 3, 5}, limits));
  EXPECT_TRUE(is_valid_header({0, 0, 0, 0, 0, 0}, limits));
  EXPECT_FALSE(is_valid_header({0, 3, 2, 4, 3, 5}, limits));
  EXPECT_FALSE(is_valid_header({0, 2, 3, 4, 3, 5}, limits));
  EXPECT_FALSE(is_valid_header({0, 2, 2, 5, 3, 5}, limits));
  EXPECT_FALSE(is_valid_header({0, 2, 2, 4, 4, 5}, limits));
  EXPECT_FALSE(is_valid_header({0, 2, 2, 4, 3, 6}, limits));
  EXPECT_FALSE(is_valid_header({0, 2, 2, 4, -1, 5}, limits));
}

TEST_F(PlanCheck, ListsEndWithTheWords) {
  SlotInit init{2, 0, 0, 7, {}};
  init.params.num_logit_bias = 2;
  init.params.num_bad_word_ints = 4;
  init.params.has_allowed_ids = 1;
  EXPECT_EQ(list_words(init.params, batch.lists), 13);
  EXPECT_TRUE(is_valid_init(init, header, batch));
  init.word_offset = 8;
  EXPECT_FALSE(is_valid_init(init, header, batch));
  init.word_offset = INT32_MAX;
  EXPECT_FALSE(is_valid_init(init, header, batch));
  init.params = {};
  EXPECT_TRUE(is_valid_init(init, header, batch)) << "no lists: the offset does not matter";
  init.slot = 3;
  EXPECT_FALSE(is_valid_init(init, header, batch)) << "the null slot";
}

TEST_F(PlanCheck, ListsNeedTheirMemory) {
  SlotInit init{0, 0, 0, 0, {}};
  batch.lists = {};
  EXPECT_TRUE(is_valid_init(init, header, batch));
  init.params.num_logit_bias = 1;
  EXPECT_FALSE(is_valid_init(init, header, batch));
  init.params = {};
  init.params.has_allowed_ids = 1;
  EXPECT_FALSE(is_valid_init(init, header, batch));
}

TEST_F(PlanCheck, APredictionFitsIntoItsSlot) {
  SlotInit init{0, 0, 0, 17, {}};
  init.params.num_prediction = 3;
  EXPECT_EQ(list_words(init.params, batch.lists), 3);
  EXPECT_TRUE(is_valid_init(init, header, batch));
  init.word_offset = 18;
  EXPECT_FALSE(is_valid_init(init, header, batch));
  init.word_offset = 0;
  init.params.num_prediction = 4;
  EXPECT_FALSE(is_valid_init(init, header, batch));
  init.params.num_prediction = 1;
  batch.lists.prediction = nullptr;
  EXPECT_FALSE(is_valid_init(init, header, batch));
}

TEST_F(PlanCheck, WindowedBlocksNeedATable) {
  EXPECT_TRUE(is_valid_block_update({2, 3, 9, 1, 0}, batch));
  EXPECT_FALSE(is_valid_block_update({2, 4, 9, 1, 0}, batch));
  EXPECT_FALSE(is_valid_block_update({2, 3, 9, 1, 1}, batch));
  batch.window_tables = &ints;
  EXPECT_TRUE(is_valid_block_update({2, 3, 9, 1, 1}, batch));
}

TEST_F(PlanCheck, NewIdsEndWithTheTokensAndTheSlot) {
  EXPECT_TRUE(is_valid_span({0, 4, 0, 4, 6, 28, 0, 0, 0, 0}, header, batch));
  EXPECT_FALSE(is_valid_span({0, 4, 0, 4, 7, 28, 0, 0, 0, 0}, header, batch));
  EXPECT_FALSE(is_valid_span({0, 4, 0, 4, 6, 29, 0, 0, 0, 0}, header, batch));
  EXPECT_FALSE(is_valid_span({0, 4, 0, INT32_MAX, 6, 28, 0, 0, 0, 0}, header, batch));
  EXPECT_TRUE(is_valid_span({0, 4, 0, 0, 700, 2900, 0, 0, 0, 0}, header, batch)) << "no new ids";
}

TEST_F(PlanCheck, DraftBoundsAndDrafters) {
  const auto span = [&](int limit, int rows) {
    return is_valid_span({0, 1, 0, 0, 0, 0, 0, limit, rows, 0}, header, batch);
  };
  EXPECT_TRUE(span(0, 0));
  EXPECT_TRUE(span(kMaxDraftTokens, INT32_MAX));
  EXPECT_FALSE(span(kMaxDraftTokens + 1, 0));
  EXPECT_FALSE(span(-1, 0));
  EXPECT_FALSE(span(0, -1));
  SlotInit init{0, 0, 0, 0, {}};
  init.params.drafter = kMaxDrafters - 1;
  EXPECT_TRUE(is_valid_init(init, header, batch));
  init.params.drafter = kMaxDrafters;
  EXPECT_FALSE(is_valid_init(init, header, batch));
  init.params.drafter = -1;
  EXPECT_FALSE(is_valid_init(init, header, batch));
}

}  // namespace
}  // namespace foretoken
