#include "kernels/step/upload.h"

#include "support/step_data.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

class UploadTest : public StepTest {
 protected:
  void SetUp() override {
    StepTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    entry_bytes_ = plan_bytes(sizes_.limits);
    ring_ = allocate<char>(static_cast<size_t>(entry_bytes_) * kStepRingSize, MemoryKind::kPinned);
  }

  PlanView entry(uint64_t step) {
    return plan_view(ring_ + static_cast<int64_t>(step % kStepRingSize) * entry_bytes_,
                     sizes_.limits);
  }
  UploadArgs args(uint64_t step) {
    return {
        to_device(std::vector<uint64_t>{step}), ring_, entry_bytes_, plan_, sizes_.limits, batch_};
  }

  int64_t entry_bytes_ = 0;
  char* ring_ = nullptr;
};

TEST_F(UploadTest, OnlySpansLeavesTheSlotsAlone) {
  StepData d{sizes_};
  d.set_sequence(0, {60, 61, 62}, 2);
  push(d);
  const PlanView plan = entry(3);
  *plan.header = {3, 1, 1, 0, 2, 0};
  plan.inits[0] = SlotInit{0, 5, 4, 0, {}};
  plan.spans[0] = {0, 1, 2, 2, 0, 0, 0, 3, 7, 0};
  plan.tokens[0] = plan.tokens[1] = 99;
  UploadArgs only_spans = args(3);
  only_spans.only_spans = 1;
  upload(queue(), only_spans);
  pull(d);
  EXPECT_EQ(d.slots[0].len, 3);
  EXPECT_EQ(d.tokens(0), (Ids{60, 61, 62}));
  std::vector<char> copy = read(plan_, static_cast<size_t>(entry_bytes_));
  const PlanView device = plan_view(copy.data(), sizes_.limits);
  EXPECT_EQ(device.header->step, 3u);
  EXPECT_EQ(device.spans[0].draft_rows, 7);
}

TEST_F(UploadTest, APredictionFollowsTheOtherLists) {
  StepData d{sizes_};
  d.slots[2].from_prediction = 1;
  push(d);
  const PlanView plan = entry(0);
  *plan.header = {0, 0, 1, 0, 0, 6};
  plan.inits[0] = SlotInit{2, 5, 4, 1, {}};
  plan.inits[0].params.has_allowed_ids = 1;
  plan.inits[0].params.num_prediction = 3;
  for (uint32_t i = 0; i < 6; ++i) plan.words[i] = 70 + i;
  upload(queue(), args(0));
  pull(d);
  EXPECT_EQ(d.params[2].num_prediction, 3);
  EXPECT_EQ(d.slots[2].from_prediction, 0);
  EXPECT_EQ(d.allowed_ids[2 * 2 + 1], 72u);
  const auto ids = d.prediction.begin() + 2 * sizes_.max_prediction;
  EXPECT_EQ(Ids(ids, ids + 4), (Ids{73, 74, 75, 0}));
}

TEST_F(UploadTest, AppliesInitsBlocksAndTokensInOrder) {
  StepData d{sizes_};
  d.set_sequence(1, {60, 61, 62, 63, 64, 65}, 5);
  push(d);
  const uint64_t step = 6;
  const PlanView plan = entry(step);
  *plan.header = {step, 2, 1, 3, 5, 0};
  plan.inits[0] = SlotInit{0, 5, 4, 0, {}};
  plan.inits[0].params.seed = 99;
  plan.inits[0].draft_computed = 3;
  plan.inits[0].params.max_len = 20;
  // Slot 0 takes block 20 as a prefix hit and block 21 afresh; slot 1 grows by block 22.
  plan.block_updates[0] = {0, 0, 20, 0, 0};
  plan.block_updates[1] = {0, 1, 21, 8, 0};
  plan.block_updates[2] = {1, 2, 22, 3, 0};
  plan.spans[0] = {0, 1, 2, 5, 0, 0, 0, 3, 7, 0};
  plan.spans[1] = {1, 1, 3, 0, 0, 0, 0, 0, 0, 0};
  for (int i = 0; i < 5; ++i) plan.tokens[i] = 40 + i;
  upload(queue(), args(step));
  pull(d);

  EXPECT_EQ(d.params[0].seed, 99u);
  EXPECT_EQ(d.params[0].max_len, 20);
  EXPECT_EQ(d.slots[0].len, 5);
  EXPECT_EQ(d.slots[0].computed, 4);
  EXPECT_EQ(d.slots[0].finished, 0);
  EXPECT_EQ(d.slots[0].num_draft_tokens, 0);
  EXPECT_EQ(d.slots[0].draft.computed, 3);
  EXPECT_EQ(d.slots[1].len, 6);
  EXPECT_EQ(d.block_tables[0], 20);
  EXPECT_EQ(d.block_tables[1], 21);
  EXPECT_EQ(d.block_tables[d.sizes.max_blocks + 2], 22);
  const PageHeader& fresh = d.page_headers[21];
  EXPECT_EQ(fresh.parent, 20);
  EXPECT_EQ(fresh.parent_epoch, 1u);
  EXPECT_EQ(fresh.epoch, 8u);
  EXPECT_EQ(fresh.count, 1);
  EXPECT_EQ(d.page_headers[20].epoch, 1u);
  EXPECT_EQ(d.page_headers[20].count, 4);
  EXPECT_EQ(d.page_headers[22].parent, d.block_tables[d.sizes.max_blocks + 1]);
  EXPECT_EQ(d.page_headers[22].count, 0);
  EXPECT_EQ(d.tokens(0), (Ids{40, 41, 42, 43, 44}));
  EXPECT_EQ(d.tokens(1), (Ids{60, 61, 62, 63, 64, 65}));

  std::vector<char> copy = read(plan_, static_cast<size_t>(entry_bytes_));
  const PlanView device = plan_view(copy.data(), sizes_.limits);
  EXPECT_EQ(device.header->step, step);
  EXPECT_EQ(device.header->num_spans, 2);
  EXPECT_EQ(device.spans[1].max_verified, 3);
  EXPECT_EQ(device.spans[0].num_draft_tokens, 3);
  EXPECT_EQ(device.spans[0].draft_rows, 7);
}

TEST_F(UploadTest, FirstBlockHasNoParentAndResetsTheSlot) {
  StepData d{sizes_};
  d.set_sequence(2, {1, 2, 3}, 2);
  d.set_drafts(2, {4});
  d.slots[2].finished = static_cast<int32_t>(DeviceFinish::kStop);
  push(d);
  const PlanView plan = entry(0);
  *plan.header = {0, 1, 1, 1, 2, 0};
  plan.inits[0] = SlotInit{2, 2, 0, 0, {}};
  plan.block_updates[0] = {2, 0, 5, 4, 0};
  plan.spans[0] = {2, 2, 0, 2, 0, 0, 0, 0, 0, 0};
  plan.tokens[0] = 8;
  plan.tokens[1] = 9;
  upload(queue(), args(0));
  pull(d);
  EXPECT_EQ(d.page_headers[5].parent, -1);
  EXPECT_EQ(d.page_headers[5].count, 2);
  EXPECT_EQ(d.slots[2].finished, 0);
  EXPECT_EQ(d.slots[2].num_draft_tokens, 0);
  EXPECT_EQ(d.tokens(2), (Ids{8, 9}));
}

// What the drafter knew of the slot's last sequence and of the block's last tokens is gone; what it
// knows of a prefix hit stays.
TEST_F(UploadTest, AFirstSpanForgetsTheDrafterState) {
  StepData d{sizes_};
  d.set_sequence(0, {1, 2, 3, 4, 5, 6}, 5);
  std::memset(&d.slots[0].draft, 0x77, sizeof(DraftState));
  d.slots[1].draft.computed = 9;
  for (PageHeader& page : d.page_headers) {
    for (int k = 0; k < kMaxDrafters; ++k) page.draft_counts[k] = static_cast<int16_t>(k + 1);
  }
  push(d);
  const PlanView plan = entry(0);
  *plan.header = {0, 1, 1, 2, 2, 0};
  plan.inits[0] = SlotInit{0, 6, 4, 0, {}};
  plan.block_updates[0] = {0, 0, 20, 0, 0};
  plan.block_updates[1] = {0, 1, 21, 4, 0};
  plan.spans[0] = {0, 2, 0, 2, 0, 4, 0, 1, 2, 1};
  plan.tokens[0] = 8;
  plan.tokens[1] = 9;
  upload(queue(), args(0));
  pull(d);
  const DraftState none{};
  EXPECT_EQ(std::memcmp(&d.slots[0].draft, &none, sizeof none), 0);
  EXPECT_EQ(d.slots[1].draft.computed, 9);
  for (int k = 0; k < kMaxDrafters; ++k) {
    EXPECT_EQ(d.page_headers[20].draft_counts[k], k + 1);
    EXPECT_EQ(d.page_headers[21].draft_counts[k], 0);
    EXPECT_EQ(d.page_headers[22].draft_counts[k], k + 1);
  }
}

TEST_F(UploadTest, TakesTheListsFromTheWords) {
  push(StepData{sizes_});
  const PlanView plan = entry(1);
  *plan.header = {1, 0, 2, 0, 0, 20};
  plan.inits[0] = SlotInit{3, 2, 0, 4, {}};
  plan.inits[0].params.num_logit_bias = 2;
  plan.inits[0].params.num_bad_word_ints = 5;
  plan.inits[0].params.has_allowed_ids = 1;
  plan.inits[1] = SlotInit{1, 2, 0, 17, {}};
  plan.inits[1].params.num_bad_word_ints = 3;
  const float bias[] = {-2.5f, 7.0f};
  uint32_t* at = plan.words + 4;
  for (int i = 0; i < 2; ++i) {
    *at++ = static_cast<uint32_t>(30 + i);
    std::memcpy(at++, &bias[i], sizeof(float));
  }
  for (const uint32_t word : {1u, 9u, 2u, 7u, 8u}) *at++ = word;
  *at++ = 0x80000001u;
  *at++ = 0x55u;
  plan.words[17] = 2u;
  plan.words[18] = 50u;
  plan.words[19] = 51u;
  upload(queue(), args(1));
  StepData d{sizes_};
  pull(d);
  const auto* biases = &d.logit_bias[3 * kMaxLogitBias];
  EXPECT_EQ(biases[0].id, 30);
  EXPECT_EQ(biases[0].bias, -2.5f);
  EXPECT_EQ(biases[1].id, 31);
  EXPECT_EQ(biases[1].bias, 7.0f);
  const auto words = d.bad_words.begin() + 3 * kMaxBadWordInts;
  EXPECT_EQ(Ids(words, words + 6), (Ids{1, 9, 2, 7, 8, 0}));
  const auto others = d.bad_words.begin() + kMaxBadWordInts;
  EXPECT_EQ(Ids(others, others + 4), (Ids{2, 50, 51, 0}));
  EXPECT_EQ(d.allowed_ids[3 * 2], 0x80000001u);
  EXPECT_EQ(d.allowed_ids[3 * 2 + 1], 0x55u);
  EXPECT_EQ(d.allowed_ids[1 * 2], 0u);
}

TEST_F(UploadTest, WindowedBlocksHaveTheirOwnTableAndNoPages) {
  StepData d{sizes_};
  push(d);
  const PlanView plan = entry(0);
  *plan.header = {0, 0, 0, 2, 0, 0};
  plan.block_updates[0] = {2, 3, 77, 9, 1};
  plan.block_updates[1] = {2, 3, 6, 0, 0};
  upload(queue(), args(0));
  const StepData before = d;
  pull(d);
  const size_t at = static_cast<size_t>(2 * d.sizes.max_blocks + 3);
  EXPECT_EQ(d.window_tables[at], 77);
  EXPECT_EQ(d.block_tables[at], 6);
  for (size_t i = 0; i < d.page_headers.size(); ++i) {
    EXPECT_EQ(d.page_headers[i].epoch, before.page_headers[i].epoch) << i;
  }
}

// A small plan with a part of each kind.
void fill(const PlanView& plan) {
  *plan.header = {0, 1, 1, 1, 2, 8};
  plan.inits[0] = SlotInit{0, 2, 0, 1, {}};
  plan.inits[0].params.num_logit_bias = 2;
  plan.inits[0].params.num_bad_word_ints = 3;
  plan.block_updates[0] = {0, 1, 5, 3, 0};
  plan.spans[0] = {0, 2, 0, 2, 0, 0, 0, 4, 9, 4};
}

struct Defect {
  const char* name;
  void (*damage)(const PlanView& plan);
};

// Each leaves the plan or the slots' memory somewhere.
const Defect kDefects[] = {
    {"too_many_words", [](const PlanView& p) { p.header->num_words = 65; }},
    {"negative_words", [](const PlanView& p) { p.header->num_words = -1; }},
    {"too_many_tokens", [](const PlanView& p) { p.header->num_tokens = 33; }},
    {"word_offset_behind", [](const PlanView& p) { p.inits[0].word_offset = 8; }},
    {"word_offset_far", [](const PlanView& p) { p.inits[0].word_offset = 1 << 30; }},
    {"word_offset_negative", [](const PlanView& p) { p.inits[0].word_offset = -1; }},
    {"too_many_biases",
     [](const PlanView& p) { p.inits[0].params.num_logit_bias = kMaxLogitBias + 1; }},
    {"biases_beyond_words", [](const PlanView& p) { p.inits[0].params.num_logit_bias = 4; }},
    {"negative_bad_words", [](const PlanView& p) { p.inits[0].params.num_bad_word_ints = -3; }},
    {"too_many_stop_ids",
     [](const PlanView& p) { p.inits[0].params.num_stop_ids = kMaxStopIds + 1; }},
    {"init_slot", [](const PlanView& p) { p.inits[0].slot = 4; }},
    {"update_slot", [](const PlanView& p) { p.block_updates[0].slot = -1; }},
    {"update_index", [](const PlanView& p) { p.block_updates[0].index = 8; }},
    {"update_block", [](const PlanView& p) { p.block_updates[0].block = -2; }},
    {"span_slot", [](const PlanView& p) { p.spans[0].slot = 1000; }},
    {"token_offset", [](const PlanView& p) { p.spans[0].token_offset = 1; }},
    {"new_ids", [](const PlanView& p) { p.spans[0].num_new_ids = -1; }},
    {"write_position", [](const PlanView& p) { p.spans[0].write_position = 31; }},
    {"num_draft_tokens",
     [](const PlanView& p) { p.spans[0].num_draft_tokens = kMaxDraftTokens + 1; }},
    {"negative_draft_limit", [](const PlanView& p) { p.spans[0].num_draft_tokens = -1; }},
    {"negative_draft_rows", [](const PlanView& p) { p.spans[0].draft_rows = -1; }},
    {"drafter", [](const PlanView& p) { p.inits[0].params.drafter = kMaxDrafters; }},
    {"negative_drafter", [](const PlanView& p) { p.inits[0].params.drafter = -1; }},
};

class UploadDefectTest : public UploadTest, public testing::WithParamInterface<Defect> {};

TEST_P(UploadDefectTest, IsTheQueuesErrorAndChangesNothing) {
  StepData d{sizes_};
  d.set_sequence(0, {1, 2, 3}, 2);
  push(d);
  const PlanView plan = entry(0);
  fill(plan);
  GetParam().damage(plan);
  upload(queue(), args(0));
  const Status status = queue().drain();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("exceeds its limits"), std::string::npos) << status.message();
  if (device().type() == DeviceType::kCuda) return;  // a failed queue copies nothing back
  EXPECT_EQ(batch_.slots[0].len, 3);
  EXPECT_EQ(batch_.block_tables[1], d.block_tables[1]);
}

INSTANTIATE_TEST_SUITE_P(Table, UploadDefectTest, testing::ValuesIn(kDefects),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(UploadTest, ThePlanThatTheDefectsDamageIsFine) {
  push(StepData{sizes_});
  fill(entry(0));
  upload(queue(), args(0));
  drain();
}

TEST_F(UploadTest, APlanOfAnotherStepIsAnError) {
  push(StepData{sizes_});
  entry(5).header->step = 1;
  upload(queue(), args(5));
  const Status status = queue().drain();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("plan of step 1 found in the ring entry of step 5"),
            std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace foretoken
