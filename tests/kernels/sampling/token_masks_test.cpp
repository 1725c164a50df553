#include "kernels/sampling/token_masks.h"

#include <cmath>
#include <thread>

#include "kernels/step/verify_and_commit.h"
#include "support/random_data.h"
#include "support/step_data.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

constexpr int kSpans = 4, kRowsEach = 4, kWords = 2, kTokenMasksVocab = 61, kTokenMasksRows = 16;
constexpr int64_t kLongNs = 120'000'000'000;

TEST(MaskAnswer, HoldsForItsTicketAlone) {
  const uint64_t word = mask_answer_word(70'000, {5, 17});
  EXPECT_EQ(mask_answer(word, 70'000).num_masks, 5);
  EXPECT_EQ(mask_answer(word, 70'000).num_decided, 17);
  EXPECT_EQ(mask_answer(word, 70'004).num_decided, 0);
  EXPECT_EQ(mask_answer(0, 0).num_decided, 0);
}

TEST(MaskWait, GrowsUntilTheHostAnswers) {
  EXPECT_EQ(mask_wait_ns(0, 0), 0);
  EXPECT_EQ(mask_wait_ns(0, 1), 20'000);
  EXPECT_EQ(mask_wait_ns(0, 3), 80'000);
  EXPECT_EQ(mask_wait_ns(50'000, 2), 200'000);
  EXPECT_LE(mask_wait_ns(0, 1'000'000), 20'000'000);
  EXPECT_EQ(mask_wait_ns(30'000'000, 5), 30'000'000);
}

TEST(MaskTail, WhatAStepCanCommitAndSomeMore) {
  EXPECT_EQ(mask_tail(-3, 4), 0);
  EXPECT_EQ(mask_tail(5, 4), 5);
  EXPECT_EQ(mask_tail(100, 4), kLeastMaskTail);
  EXPECT_EQ(mask_tail(100, kMaxDraftTokens + 1), kMaxDraftTokens + 1);
}

class TokenMasksTest : public StepTest {
 protected:
  void SetUp() override {
    StepTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    uint64_t* words = allocate<uint64_t>(5, MemoryKind::kPinned);
    exchange_ = {.posted = words,
                 .passed = words + 1,
                 .taken = words + 2,
                 .answered = words + 3,
                 .num_spans = allocate<int32_t>(kMaskRing, MemoryKind::kPinned),
                 .spans = allocate<MaskSpan>(kMaskRing * kSpans, MemoryKind::kPinned),
                 .answers = allocate<uint64_t>(kMaskRing * kSpans, MemoryKind::kPinned),
                 .masks = allocate<uint32_t>(kSpans * kRowsEach * kWords, MemoryKind::kPinned),
                 .resting = words + 4,
                 .repairs = allocate<int32_t>(kSpans * kMaxDraftTokens, MemoryKind::kPinned),
                 .max_spans = kSpans,
                 .rows_each = kRowsEach,
                 .mask_words = kWords};
    ticket_ = to_device(std::vector<MaskTicket>{{0, 0, 0}});
  }

  // Slot 0: no grammar; slot 1: two drafts; slot 2: a chunk of its prompt; slot 3: one known token.
  StepData data() {
    StepData d{StepSizes{}};
    d.set_sequence(0, {1, 2}, 1);
    d.set_sequence(1, {10, 11, 12, 13, 14}, 4);
    d.set_drafts(1, {15, 16});
    d.set_sequence(2, {20, 21, 22, 23}, 0);
    d.set_sequence(3, {30}, 0);
    d.params[1].prompt_len = 2;
    d.params[3].prompt_len = 1;
    for (const size_t slot : {1u, 2u, 3u}) d.params[slot].grammar = 100 + slot;
    for (int s = 0; s < 4; ++s) d.add_span(s, s == 2 ? 2 : 4, 4);
    return d;
  }

  void run_export(int32_t drafter = kVerifying, int32_t num_repaired = 0) {
    export_spans(queue(), {tensors_.counts, tensors_.spans, batch_, exchange_, ticket_, drafter,
                           num_repaired});
    drain();
  }
  void await(int64_t budget_ns, int32_t drafter = kVerifying, int32_t repairs = 0) {
    await_masks(queue(), {tensors_.counts, tensors_.spans, batch_.slots, batch_.params, exchange_,
                          ticket_, budget_ns, drafter, repairs});
  }

  MaskExchange exchange_{};
  MaskTicket* ticket_ = nullptr;
};

TEST_F(TokenMasksTest, ExportsTailAndDraftsOfSamplingSpans) {
  StepData d = data();
  run_prepare(d);
  run_export();
  EXPECT_EQ(*exchange_.posted, 1u);
  EXPECT_EQ(*exchange_.passed, 1u);
  ASSERT_EQ(exchange_.num_spans[0], 4);
  EXPECT_EQ(exchange_.spans[0].grammar, 0u);
  EXPECT_EQ(exchange_.spans[2].grammar, 0u);
  const MaskSpan& span = exchange_.spans[1];
  EXPECT_EQ(span.grammar, 101u);
  EXPECT_EQ(span.len, 5);
  EXPECT_EQ(Ids(span.tail, span.tail + span.num_tail), (Ids{12, 13, 14}));
  EXPECT_EQ(Ids(span.drafts, span.drafts + span.num_draft_tokens), (Ids{15, 16}));
  EXPECT_EQ(exchange_.spans[3].num_tail, 0);
  EXPECT_EQ(exchange_.spans[3].num_draft_tokens, 0);
}

// Slot 1 has one of two wanted drafts; slot 3 belongs to another drafter, or has all of its drafts.
TEST_F(TokenMasksTest, ExportsTheSlotsThatGoOnDrafting) {
  StepData d = data();
  for (const bool other : {true, false}) {
    d.params[1].drafter = 1;
    d.params[3].drafter = other ? 0 : 1;
    d.slots[1].draft.num_draft_tokens = 2;
    d.slots[3].draft.num_draft_tokens = other ? 2 : 0;
    run_prepare(d);
    pull(d);
    d.slots[1].num_draft_tokens = 1;
    d.slots[3].num_draft_tokens = 0;
    push(d);
    run_export(1);
    const auto entry = (*exchange_.posted - 1) % kMaskRing * kSpans;
    EXPECT_EQ(exchange_.spans[entry + 1].grammar, 101u);
    EXPECT_EQ(exchange_.spans[entry + 1].num_draft_tokens, 1);
    EXPECT_EQ(exchange_.spans[entry + 1].drafts[0], 15);
    EXPECT_EQ(exchange_.spans[entry + 2].grammar, 0u);
    EXPECT_EQ(exchange_.spans[entry + 3].grammar, 0u);
    *exchange_.taken = *exchange_.posted;
  }
}

// Slot 1 has all of its drafts, slot 3 none; 3 are wanted, 2 are possible.
TEST_F(TokenMasksTest, DraftsAreRepairedWhereTheyWereAnswered) {
  StepData d = data();
  run_prepare(d);
  pull(d);
  for (const size_t slot : {1u, 3u}) {
    d.params[slot].drafter = 1;
    d.slots[slot].computed = d.slots[slot].len - 1;
    d.slots[slot].draft.num_draft_tokens = 3;
  }
  d.slots[1].num_draft_tokens = 2;
  d.slots[3].num_draft_tokens = 0;
  push(d);
  run_export(1, 2);
  EXPECT_EQ(exchange_.spans[0].num_repaired, 0);
  EXPECT_EQ(exchange_.spans[1].num_repaired, 2);
  EXPECT_EQ(exchange_.spans[1].num_draft_tokens, 2);
  EXPECT_EQ(exchange_.spans[2].grammar, 0u);
  EXPECT_EQ(exchange_.spans[3].num_repaired, 2);
  const Ids repairs = {15, 40};
  std::copy(repairs.begin(), repairs.end(), exchange_.repairs + kMaxDraftTokens);
  exchange_.answers[1] = mask_answer_word(0, {2, 3});
  exchange_.answers[3] = mask_answer_word(7, {2, 3});  // for another ticket
  *exchange_.answered = 1;
  await(kLongNs, 1, 1);
  drain();
  pull(d);
  EXPECT_EQ(Ids(d.slots[1].drafts, d.slots[1].drafts + d.slots[1].num_draft_tokens), repairs);
  EXPECT_EQ(d.slots[3].num_draft_tokens, 0);
  // A host that rests is not asked.
  *exchange_.resting = 1;
  run_export(1, 2);
  EXPECT_EQ(*exchange_.posted, 1u);
  EXPECT_EQ(*exchange_.passed, 2u);
}

TEST_F(TokenMasksTest, ALongOutputSendsItsEnd) {
  StepData d{StepSizes{.block_size = 8}};
  Ids ids;
  for (int i = 0; i < 40; ++i) ids.push_back(100 + i);
  d.set_sequence(1, ids, 39);
  d.params[1].prompt_len = 3;
  d.params[1].grammar = 7;
  d.add_span(1, 1, 0);
  run_prepare(d);
  run_export();
  const MaskSpan& span = exchange_.spans[0];
  EXPECT_EQ(Ids(span.tail, span.tail + span.num_tail), Ids(ids.end() - kLeastMaskTail, ids.end()));
}

TEST_F(TokenMasksTest, PostsNothingIntoEntriesThatTheHostStillNeeds) {
  StepData d = data();
  run_prepare(d);
  for (int i = 0; i < kMaskRing + 2; ++i) run_export();
  EXPECT_EQ(*exchange_.posted, static_cast<uint64_t>(kMaskRing));
  EXPECT_EQ(*exchange_.passed, kMaskRing + 2u);
  await(kLongNs);  // would wait for ever if it waited for what was not posted
  drain();
  *exchange_.taken = kMaskRing + 2;
  run_export();
  EXPECT_EQ(*exchange_.posted, kMaskRing + 3u);
}

TEST_F(TokenMasksTest, WaitsForTheAnswersAndNotesThem) {
  StepData d = data();
  run_prepare(d);
  run_export();
  std::thread host([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    exchange_.answers[1] = mask_answer_word(0, {2, 3});
    exchange_.answers[3] = mask_answer_word(1, {1, 1});  // for another ticket
    std::atomic_ref(*exchange_.answered).store(1, std::memory_order_release);
  });
  await(kLongNs);
  drain();
  host.join();
  pull(d);
  EXPECT_EQ(d.slots[1].num_masks, 2);
  EXPECT_EQ(d.slots[1].num_decided, 3);
  EXPECT_EQ(d.slots[1].mask_begin, kRowsEach);
  EXPECT_EQ(d.slots[3].num_decided, 0);
}

TEST_F(TokenMasksTest, GoesOnWhenTheBudgetIsSpent) {
  StepData d = data();
  run_prepare(d);
  run_export();
  exchange_.answers[1] = mask_answer_word(0, {1, 1});
  await(2'000'000);
  drain();
  pull(d);
  EXPECT_EQ(d.slots[1].num_decided, 1);
}

TEST_F(TokenMasksTest, WaitsLongerForAHostThatWasLate) {
  StepData d = data();
  run_prepare(d);
  for (int i = 0; i < 12; ++i) {
    run_export();
    await(0);
    drain();
    *exchange_.taken = static_cast<uint64_t>(i) + 1;
  }
  run_export();
  const auto begin = std::chrono::steady_clock::now();
  await(0);
  drain();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(9));
  exchange_.answers[12 % kMaskRing * kSpans + 1] = mask_answer_word(12, {1, 1});
  *exchange_.answered = 13;
  await(0);
  drain();
  pull(d);
  EXPECT_EQ(d.slots[1].num_decided, 1);
}

TEST_F(TokenMasksTest, ForbidsWhatTheMaskForbids) {
  StepData d = data();
  run_prepare(d);
  run_export();
  const auto words = random_floats(kSpans * kRowsEach * kWords, 1);
  for (size_t i = 0; i < words.size(); ++i) {
    exchange_.masks[i] = static_cast<uint32_t>(static_cast<int64_t>(words[i] * 1e9f));
  }
  exchange_.answers[1] = mask_answer_word(0, {2, 2});
  exchange_.answers[3] = mask_answer_word(0, {1, 1});
  *exchange_.answered = 1;
  await(kLongNs);
  const auto logits = random_floats(size_t{kTokenMasksRows} * kTokenMasksVocab, 2);
  float* memory = to_device(logits);
  apply_masks(queue(), {memory, tensors_, batch_.slots, batch_.params, exchange_.masks, kWords, 1,
                        kTokenMasksRows, kTokenMasksVocab});
  const auto after = read(memory, logits.size());
  // Logits rows: slot 0, slot 1 three times, slot 3; the call begins at the second.
  const int mask_rows[] = {kRowsEach, kRowsEach + 1, -1, 3 * kRowsEach, -1};
  for (int i = 0; i < 5; ++i) {
    for (int id = 0; id < kTokenMasksVocab; ++id) {
      const auto at = static_cast<size_t>(i * kTokenMasksVocab + id);
      const int row = mask_rows[i];
      const bool allowed =
          row < 0 || (exchange_.masks[row * kWords + id / 32] >> (id % 32) & 1u) != 0;
      ASSERT_EQ(after[at], allowed ? logits[at] : -INFINITY) << i << " " << id;
    }
  }
}

// What is behind the decided rows is as if it had not been.
TEST_F(TokenMasksTest, CommitEndsWithTheDecidedRows) {
  for (int decided = 0; decided <= 3; ++decided) {
    StepData d{StepSizes{}};
    d.set_sequence(1, {10, 11, 12}, 2);
    d.set_drafts(1, {15, 16});
    d.params[1].grammar = 5;
    d.slots[1].num_decided = decided;
    d.add_span(1, 1, 4);
    push(d);
    prepare(queue(), prepare_args());
    pull(d);
    const Ids sampled = {15, 16, 17};
    std::copy(sampled.begin(), sampled.end(), d.sampled.begin());
    write(tensors_.sampled, d.sampled);
    verify_and_commit(queue(), verify_and_commit_args());
    pull(d);
    const SpanResult& result = d.results[0];
    EXPECT_EQ(Ids(result.ids, result.ids + result.num_committed),
              Ids(sampled.begin(), sampled.begin() + decided));
    EXPECT_EQ(result.num_drafted, std::min(decided, 2));
    EXPECT_EQ(result.num_accepted, std::min(decided, 2));
    EXPECT_EQ(result.finish, static_cast<int32_t>(DeviceFinish::kNone));
    EXPECT_EQ(d.slots[1].len, 3 + decided);
    EXPECT_EQ(d.slots[1].computed, 2 + decided);
    EXPECT_EQ(d.slots[1].num_draft_tokens, 0);
  }
}

}  // namespace
}  // namespace foretoken
