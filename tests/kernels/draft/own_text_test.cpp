#include "kernels/draft/cpu/own_text.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken::cpu {
namespace {

using Ids = std::vector<int32_t>;

// One slot with a text in pages of four, and what its output is expected to be.
struct OneSlot {
  OneSlot(const Ids& text, const Ids& expected, int32_t prompt_len)
      : pages(text), prediction(expected), tables(8), params(1), slots(1) {
    pages.resize(32);
    for (int32_t i = 0; i < 8; ++i) tables[static_cast<size_t>(i)] = i;
    slots[0].len = static_cast<int32_t>(text.size());
    params[0].prompt_len = prompt_len;
    params[0].num_prediction = static_cast<int32_t>(expected.size());
    batch.params = params.data();
    batch.slots = slots.data();
    batch.block_tables = tables.data();
    batch.token_pages = pages.data();
    batch.max_blocks = 8;
    batch.block_size = 4;
    batch.lists.prediction = prediction.data();
  }
  Ids drafts() const { return {slots[0].drafts, slots[0].drafts + slots[0].num_draft_tokens}; }

  Ids pages, prediction, tables;
  std::vector<SlotParams> params;
  std::vector<SlotState> slots;
  BatchState batch{};
};

TEST(OwnText, TheLongestMatchAndTheLatestOfEquals) {
  const OneSlot one({1, 2, 3, 9, 1, 2, 3, 8, 5, 2, 3}, {}, 11);
  const OwnMatch match = find_own(one.batch, 0, 1, 3);
  EXPECT_EQ(match.position, 6);
  EXPECT_EQ(match.length, 2);
  EXPECT_EQ(find_own(one.batch, 0, 3, 5).position, -1);
  const OneSlot longer({1, 2, 3, 4, 2, 3, 5, 1, 2, 3}, {}, 10);
  EXPECT_EQ(find_own(longer.batch, 0, 1, 3).position, 2);
  EXPECT_EQ(find_own(longer.batch, 0, 1, 2).position, 5) << "it counts two tokens alone";
}

TEST(OwnText, DraftsGoOnWithThePeriod) {
  OneSlot one({1, 2, 3, 1, 2}, {}, 5);
  draft_own(one.batch, 0, find_own(one.batch, 0, 1, 4), 7);
  EXPECT_EQ(one.drafts(), (Ids{3, 1, 2, 3, 1, 2, 3}));
}

TEST(OwnText, ThePredictionGoesOnWhereTheTextStands) {
  OneSlot one({1, 2, 11, 12}, {11, 12, 13, 14}, 2);
  const auto predicted = predicted_of(one.batch, 0);
  EXPECT_EQ(predicted.len, 4);
  const uint64_t key = find_predicted(one.batch, 0, predicted, 2);
  EXPECT_EQ(prediction_match::length_of(key), 4);
  draft_predicted(one.slots[0], predicted, key, 8);
  EXPECT_EQ(one.drafts(), (Ids{13, 14}));
  EXPECT_EQ(one.slots[0].from_prediction, 1);
  EXPECT_EQ(find_predicted(one.batch, 0, predicted, 5), 0u);
}

}  // namespace
}  // namespace foretoken::cpu
