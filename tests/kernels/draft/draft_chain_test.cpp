#include "kernels/draft/draft_chain.h"

#include <array>

#include "support/step_data.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

class DraftChainTest : public StepTest {
 protected:
  static constexpr int kOut = 6;

  // Slots 0 (three drafts) and 3 (two) of a block, whose rows all draft.
  void SetUp() override {
    StepTest::SetUp();
    for (const auto& [slot, len, wanted] : {std::array{0, 5, 3}, std::array{3, 9, 2}}) {
      data_.set_sequence(slot, Ids(static_cast<size_t>(len), 1), len - 1);
      data_.slots[static_cast<size_t>(slot)].draft.num_draft_tokens = wanted;
    }
    push(data_);
    args_ = {.slots = batch_.slots,
             .counts = to_device(std::vector<StepCounts>{{5, 5, 0, 0}}),
             .logits_rows = to_device(Ids{0, 1, 2, 3, 4}),
             .row_slot = to_device(Ids{0, 0, 0, 3, 3}),
             .before = to_device(Ids{4, 5, 6, 8, 9}),
             .token_ids = to_device(Ids{40, 9, 9, 43, 9}),
             .sampled = to_device(Ids(5, -5)),
             .drawn = nullptr,
             .confidence = nullptr,
             .id_map = nullptr,
             .out_counts = to_device(std::vector<StepCounts>(1)),
             .out_ids = to_device(Ids(kOut, -5)),
             .out_from = to_device(Ids(kOut, -5)),
             .out_positions = to_device(Ids(kOut, -5)),
             .out_slot = to_device(Ids(kOut, -5)),
             .out_logits_rows = to_device(Ids(kOut, -5)),
             .least = 0,
             .draft = 0,
             .num_slots = data_.sizes.num_slots,
             .max_rows = 5,
             .max_out = kOut};
  }
  void run(int draft, const Ids& drawn, const std::vector<float>& confidence = {}) {
    args_.draft = draft;
    args_.drawn = draft > 0 ? to_device(drawn) : nullptr;
    args_.confidence = confidence.empty() ? nullptr : to_device(confidence);
    draft_chain(queue(), args_);
    pull(data_);
    rows_ = read(args_.out_counts, 1)[0].num_rows;
    EXPECT_EQ(read(args_.out_counts, 1)[0].num_logits_rows, rows_);
    const Ids slots = read(args_.out_slot, kOut);
    for (int row = rows_; row < kOut; ++row) EXPECT_EQ(slots[row], data_.sizes.num_slots);
  }
  Ids live(const int32_t* values) { return read(values, static_cast<size_t>(rows_)); }

  StepData data_{StepSizes{}};
  DraftChainArgs args_{};
  int rows_ = 0;
};

TEST_F(DraftChainTest, EachDraftFollowsTheOneBefore) {
  run(0, {});
  EXPECT_EQ(live(args_.out_ids), (Ids{40, 43}));
  EXPECT_EQ(live(args_.out_from), (Ids{0, 3}));
  EXPECT_EQ(live(args_.out_positions), (Ids{4, 8}));
  EXPECT_EQ(live(args_.out_slot), (Ids{0, 3}));
  run(1, {50, 60});
  EXPECT_EQ(live(args_.out_ids), (Ids{50, 60}));
  EXPECT_EQ(live(args_.out_from), (Ids{1, 4}));
  run(2, {51, 61});
  EXPECT_EQ(live(args_.out_ids), (Ids{51}));
  EXPECT_EQ(live(args_.out_from), (Ids{2}));
  EXPECT_EQ(live(args_.out_positions), (Ids{6}));
  run(3, {52});
  EXPECT_EQ(rows_, 0);
  EXPECT_EQ(read(args_.sampled, 5), (Ids{50, 51, 52, 60, 61}));
}

// Of a block whose first row, of the last known token, drafts nothing.
TEST_F(DraftChainTest, TheFirstRowNeedNotDraft) {
  args_.logits_rows = to_device(Ids{1, 2, 3, 5, 6});
  args_.row_slot = to_device(Ids{0, 0, 0, 0, 3, 3, 3});
  args_.before = to_device(Ids{3, 4, 5, 6, 7, 8, 9});
  args_.token_ids = to_device(Ids{40, 9, 9, 9, 43, 9, 9});
  args_.lead = 1;
  run(0, {});
  EXPECT_EQ(live(args_.out_ids), (Ids{40, 43}));
  EXPECT_EQ(live(args_.out_from), (Ids{0, 3}));
  EXPECT_EQ(live(args_.out_positions), (Ids{4, 8}));
  run(1, {50, 60});
  EXPECT_EQ(live(args_.out_ids), (Ids{50, 60}));
}

TEST_F(DraftChainTest, IdsOfAReducedVocabularyAreMapped) {
  args_.id_map = to_device(Ids{70, 71, 72});
  run(0, {});
  run(1, {2, 0});
  EXPECT_EQ(live(args_.out_ids), (Ids{72, 70}));
  run(2, {-1, 1});
  EXPECT_EQ(read(args_.sampled, 5), (Ids{72, -1, -5, 70, 71}));
}

TEST_F(DraftChainTest, UnsureAndInvalidDraftsEndTheirs) {
  args_.least = 0.5f;
  run(0, {});
  run(1, {50, 60}, {0.6f, 0.4f});
  EXPECT_EQ(live(args_.out_slot), (Ids{0}));
  EXPECT_EQ(data_.slots[3].draft.num_draft_tokens, 0);
  run(2, {-1}, {0.9f});
  EXPECT_EQ(rows_, 0);
  EXPECT_EQ(data_.slots[0].draft.num_draft_tokens, 1);
}

}  // namespace
}  // namespace foretoken
