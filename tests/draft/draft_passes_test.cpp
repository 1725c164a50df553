#include "draft/draft_passes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "support/op_queue.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

// Writes down what the passes of a step enqueue and run.
class PassQueue final : public test::OpQueue {
 public:
  void launch_op(uint16_t op, const void* args, size_t) override {
    if (op == static_cast<uint16_t>(Op::kDraftRows)) {
      std::memcpy(&rows, args, sizeof rows);
      log += "rows" + std::to_string(rows.max_rows) + " ";
    } else if (op == static_cast<uint16_t>(Op::kDraftNext)) {
      std::memcpy(&next, args, sizeof next);
      log += "next" + std::to_string(next.pass) + " ";
      in.push_back(next.row_slot);
      out.push_back(next.out.rows.row_slot);
    } else {
      ADD_FAILURE() << "op " << op;
    }
  }

  std::string log;
  DraftRowsArgs rows{};
  DraftNextArgs next{};
  std::vector<const int32_t*> in, out;
};

class DraftPassesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (test_device() == nullptr) GTEST_SKIP() << "no device";
    passes_ = std::make_unique<DraftPasses>(*test_device(), 12, 4);
    static const int32_t map = 3;
    ASSERT_TRUE(
        passes_->take({.token_map = &map, .first_entry = 1, .max_len = 99, .keeps_written = true})
            .ok());
    step_.plan = &plan_;
    step_.batch.slots = &slot_;
    step_.batch.params = &params_;
    step_.batch.page_headers = &page_;
    step_.batch.block_tables = step_.batch.token_pages = &plan_;
    step_.tensors.spans = &span_;
    step_.batch.block_size = 16;
    step_.index = 2;
  }

  std::string run(const DraftShape& shape) {
    queue_ = {};
    passes_->enqueue(queue_, step_, shape,
                     [&](int pass, const DraftTensors& tensors, int max_rows, int max_logits) {
                       queue_.log += "run" + std::to_string(pass) + "/" + std::to_string(max_rows) +
                                     "/" + std::to_string(max_logits) + " ";
                       EXPECT_EQ(tensors.rows.spans, nullptr);
                       ran_.push_back(tensors.rows.row_slot);
                     });
    return queue_.log;
  }

  int32_t plan_ = 0;
  SlotState slot_{};
  SlotParams params_{};
  PageHeader page_{};
  SpanState span_{};
  DraftStep step_;
  PassQueue queue_;
  std::vector<const int32_t*> ran_;
  std::unique_ptr<DraftPasses> passes_;
};

TEST_F(DraftPassesTest, CatchesUpThenDraftsInTurns) {
  EXPECT_EQ(run({.num_draft_tokens = 3, .max_catch_up_rows = 12, .max_spans = 2}),
            "rows12 run0/12/2 next0 run1/2/2 next1 run2/2/2 next2 ");
  // Each pass reads what the one before laid out, and never writes what it reads.
  ASSERT_EQ(ran_.size(), 3u);
  for (size_t pass = 0; pass < 3; ++pass) {
    EXPECT_EQ(queue_.in[pass], ran_[pass]);
    EXPECT_NE(queue_.out[pass], ran_[pass]);
    if (pass == 0) continue;
    EXPECT_EQ(ran_[pass], queue_.out[pass - 1]);
  }
  EXPECT_EQ(queue_.rows.drafter, 2);
  EXPECT_EQ(queue_.rows.first_entry, 1);
  EXPECT_EQ(queue_.rows.max_len, 99);
  EXPECT_EQ(*queue_.rows.token_map, 3);
  EXPECT_EQ(*queue_.next.token_map, 3);
  EXPECT_EQ(queue_.next.keeps_written, 1);
  EXPECT_EQ(queue_.next.max_rows, 2);
}

TEST_F(DraftPassesTest, ADrafterWithoutKvHasARowOfEachSequence) {
  ASSERT_EQ(run({.num_draft_tokens = 1, .max_catch_up_rows = 4, .max_spans = 4}),
            "rows4 run0/4/4 next0 ");
  EXPECT_EQ(queue_.rows.last_only, 0);
  passes_ = std::make_unique<DraftPasses>(*test_device(), 4, 4);
  ASSERT_TRUE(passes_->take({.max_len = 99, .last_only = true}).ok());
  run({.num_draft_tokens = 1, .max_catch_up_rows = 4, .max_spans = 4});
  EXPECT_EQ(queue_.rows.last_only, 1);
}

TEST_F(DraftPassesTest, OneDraftIsOnePass) {
  EXPECT_EQ(run({.num_draft_tokens = 1, .max_catch_up_rows = 4, .max_spans = 4}),
            "rows4 run0/4/4 next0 ");
}

TEST_F(DraftPassesTest, EntriesAlone) {
  EXPECT_EQ(run({.num_draft_tokens = 0, .max_catch_up_rows = 8, .max_spans = 0}),
            "rows8 run0/8/0 ");
}

TEST_F(DraftPassesTest, AtRestNothing) { EXPECT_EQ(run({}), ""); }

TEST_F(DraftPassesTest, HoldsTheLargestPass) {
  EXPECT_EQ(passes_->max_rows(), 12);
  EXPECT_EQ(passes_->max_logits_rows(), 4);
  EXPECT_GE(passes_->bytes(), 2 * 7 * 12 * 4);
  const DraftPasses narrow(*test_device(), 2, 8);
  EXPECT_EQ(narrow.max_rows(), 8);
}

}  // namespace
}  // namespace foretoken
