#include "engine/request/logprob_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "kernels/plan_layout.h"

namespace foretoken {
namespace {

LogprobRow row_of(int32_t id, std::span<const TopLogprob> top) {
  return {{id, -0.5f * static_cast<float>(id), 1, static_cast<int32_t>(top.size())}, top};
}

TEST(LogprobRecord, KeepsThePromptInOrderAndOnce) {
  LogprobRecord record(2, 3, 0);
  EXPECT_FALSE(record.wants_output());
  const TopLogprob top[] = {{4, -0.1f}, {5, -0.2f}};
  record.add_prompt(0, 10, row_of(10, top));
  record.add_prompt(1, 11, row_of(11, top));
  // Again after a preemption.
  record.add_prompt(0, 99, row_of(99, top));
  EXPECT_FALSE(record.prompt_complete());
  record.add_prompt(1, 99, row_of(99, top));
  record.add_prompt(2, 12, row_of(12, {}));
  record.add_prompt(3, 99, row_of(99, {}));
  ASSERT_TRUE(record.prompt_complete());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(record.prompt(i).token.id, 10 + i);
  EXPECT_EQ(record.prompt(1).top[1].id, 5);
  EXPECT_TRUE(record.prompt(2).top.empty());
}

TEST(LogprobRecord, ARowWithoutValuesSaysSo) {
  LogprobRecord record(2, 0, 4);
  record.push(7, {{123, 0, 0, kNoLogprobs}, {}});
  EXPECT_EQ(record.front().token.id, 7);
  EXPECT_TRUE(std::isnan(record.front().token.logprob));
  EXPECT_TRUE(record.front().top.empty());
}

// The engine thread waits while the ring is full; nothing is lost or changes its place.
TEST(LogprobRecord, PassesRowsFromThreadToThread) {
  constexpr int kRows = 5000;
  LogprobRecord record(1, 0, 1 << 20);
  std::atomic<int> num_announced{0};
  std::thread engine([&] {
    for (int i = 0; i < kRows; ++i) {
      const TopLogprob top{i + 1, -1.0f};
      record.push(i, row_of(i, {&top, 1}));
      num_announced.store(i + 1, std::memory_order_release);
    }
  });
  for (int i = 0; i < kRows; ++i) {
    while (num_announced.load(std::memory_order_acquire) <= i) std::this_thread::yield();
    ASSERT_EQ(record.front().token.id, i);
    ASSERT_EQ(record.front().top[0].id, i + 1);
    record.drop(1);
  }
  engine.join();
}

TEST(LogprobRecord, ReadsTheRowsOfASpan) {
  const ResultLimits limits{.max_spans = 1, .max_rows = 8, .max_top = 2, .hidden = 0};
  std::vector<char> memory(static_cast<size_t>(result_bytes(limits)));
  const ResultView view = result_view(memory.data(), limits);
  for (int i = 0; i < 8; ++i) {
    view.rows[i] = {100 + i, -1.0f * static_cast<float>(i), 1, 2};
    view.top[2 * i] = {200 + i, 0};
    view.top[2 * i + 1] = {300 + i, 0};
  }
  Sequence sequence;
  sequence.tokens = {10, 11, 12, 13, 14};
  sequence.prompt_len = 4;
  Span span{.sequence = &sequence, .num_tokens = 3, .first_new_id = 1, .wants_all = true};
  LogprobRecord record(2, 3, 10);
  const TopLogprob none[2] = {};
  record.add_prompt(0, 11, row_of(11, none));
  // Rows 2, 3 of the step score positions 2, 3; row 4 scores output that was known already.
  const SpanResult result{.slot = 0,
                          .num_committed = 2,
                          .num_drafted = 0,
                          .num_accepted = 0,
                          .draft_missing = 0,
                          .finish = 0,
                          .logits_begin = 2,
                          .num_scored = 3,
                          .from_prediction = 0,
                          .drafter = 0,
                          .found_by = 0,
                          .num_branches = 0,
                          .winner = 0,
                          .num_by_branch = 0,
                          .ids = {55, 56},
                          .drafts = {}};
  record_logprobs(span, result, view, limits, record);
  ASSERT_TRUE(record.prompt_complete());
  EXPECT_EQ(record.prompt(1).token.id, 12);
  EXPECT_EQ(record.prompt(1).token.logprob, -2.0f);
  EXPECT_EQ(record.prompt(2).top[1].id, 303);
  EXPECT_EQ(record.front().token.id, 55);
  EXPECT_EQ(record.front().token.logprob, -5.0f);
  record.drop(1);
  EXPECT_EQ(record.front().top[0].id, 206);
}

}  // namespace
}  // namespace foretoken
