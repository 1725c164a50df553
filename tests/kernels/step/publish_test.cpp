#include "kernels/step/publish.h"

#include "support/gate.h"
#include "support/step_data.h"

namespace foretoken {
namespace {

class PublishTest : public StepTest {};

TEST_F(PublishTest, FillsTheRingAndCountsSteps) {
  push(StepData{sizes_});
  const ResultLimits& limits = sizes_.result_limits;
  const int64_t entry_bytes = result_bytes(limits);
  char* ring =
      allocate<char>(static_cast<size_t>(entry_bytes) * kStepRingSize, MemoryKind::kPinned);
  auto* word = allocate<std::atomic<uint64_t>>(1, MemoryKind::kPinned);
  uint64_t* step = to_device(std::vector<uint64_t>{2});
  for (uint64_t n = 2; n < 2 + 2 * kStepRingSize; ++n) {
    std::vector<char> result(static_cast<size_t>(entry_bytes));
    const ResultView view = result_view(result.data(), limits);
    *view.header = {n, 2, 5, 3};
    view.spans[0].slot = 3;
    view.spans[1].ids[kMaxDraftTokens] = static_cast<int32_t>(n) * 10;
    view.spans[2].slot = 77;  // beyond num_spans: not copied
    write(result_, result);
    publish(queue(), {step, result_, limits, 0, 0, ring, entry_bytes, word});
    const Status status = queue().wait({word}, n + 1, test::kPatience);
    ASSERT_TRUE(status.ok()) << status.message();
    const ResultView seen =
        result_view(ring + static_cast<int64_t>(n % kStepRingSize) * entry_bytes, limits);
    EXPECT_EQ(seen.header->step, n);
    EXPECT_EQ(seen.header->num_rows, 5);
    EXPECT_EQ(seen.header->num_logits_rows, 3);
    EXPECT_EQ(seen.spans[0].slot, 3);
    EXPECT_EQ(seen.spans[1].ids[kMaxDraftTokens], static_cast<int32_t>(n) * 10);
    EXPECT_EQ(seen.spans[2].slot, 0);
    EXPECT_EQ(word->load(), n + 1);
  }
  EXPECT_EQ(read(step, 1)[0], 2u + 2 * kStepRingSize);
}

// What lies behind the drafts that there can be stays behind.
TEST_F(PublishTest, CopiesTheDraftsThatThereCanBe) {
  push(StepData{sizes_});
  const ResultLimits& limits = sizes_.result_limits;
  const int64_t entry_bytes = result_bytes(limits);
  std::vector<char> result(static_cast<size_t>(entry_bytes));
  const ResultView view = result_view(result.data(), limits);
  *view.header = {0, 3, 9, 8};
  for (int s = 0; s < 3; ++s) {
    SpanResult& span = view.spans[s];
    span.slot = s + 1;
    span.from_prediction = 7;
    for (int i = 0; i <= kMaxDraftTokens; ++i) span.ids[i] = 100 * s + i + 1;
    for (int i = 0; i < kMaxDraftTokens; ++i) span.drafts[i] = 1000 * s + i + 1;
  }
  write(result_, result);
  for (const int most : {0, 3, kMaxDraftTokens}) {
    char* ring =
        allocate<char>(static_cast<size_t>(entry_bytes) * kStepRingSize, MemoryKind::kPinned);
    auto* word = allocate<std::atomic<uint64_t>>(1, MemoryKind::kPinned);
    uint64_t* step = to_device(std::vector<uint64_t>{0});
    publish(queue(), {.step = step,
                      .result = result_,
                      .limits = limits,
                      .with_logprobs = 0,
                      .with_pooled = 0,
                      .ring = ring,
                      .entry_bytes = entry_bytes,
                      .word = word,
                      .max_draft_tokens = most});
    ASSERT_TRUE(queue().wait({word}, 1, test::kPatience).ok());
    const ResultView seen = result_view(ring, limits);
    for (int s = 0; s < 3; ++s) {
      const SpanResult& span = seen.spans[s];
      EXPECT_EQ(span.slot, s + 1);
      EXPECT_EQ(span.from_prediction, 7);
      for (int i = 0; i <= kMaxDraftTokens; ++i) {
        EXPECT_EQ(span.ids[i], i <= most ? 100 * s + i + 1 : 0);
        if (i == kMaxDraftTokens) break;
        EXPECT_EQ(span.drafts[i], i < most ? 1000 * s + i + 1 : 0);
      }
    }
  }
}

// Rows and spans: some with, some without what can be published of them.
TEST_F(PublishTest, CopiesLiveLogprobsAndPooledStates) {
  constexpr int kTop = 5, kHidden = 37;
  sizes_.result_limits = {4, 6, kTop, kHidden};
  push(StepData{sizes_});
  const ResultLimits& limits = sizes_.result_limits;
  const int64_t entry_bytes = result_bytes(limits);
  std::vector<char> result(static_cast<size_t>(entry_bytes));
  const ResultView view = result_view(result.data(), limits);
  *view.header = {0, 3, 9, 8};
  const int num_top[] = {2, kNoLogprobs, 0, kTop, 1, kNoLogprobs};
  for (int i = 0; i < 6; ++i) {
    view.rows[i] = {100 + i, -1.5f, 1, num_top[i]};
    for (int j = 0; j < kTop; ++j) view.top[i * kTop + j] = {10 * i + j, -0.25f * float(j)};
  }
  view.spans[0].finish = view.spans[1].finish = static_cast<int32_t>(DeviceFinish::kStop);
  view.spans[0].num_committed = 1;  // a stop id
  for (int i = 0; i < 4 * kHidden; ++i) view.pooled[i] = static_cast<float>(i + 1);
  write(result_, result);
  auto* step = to_device(std::vector<uint64_t>{0});
  auto* word = allocate<std::atomic<uint64_t>>(1, MemoryKind::kPinned);
  const auto published = [&](int with_logprobs, int with_pooled) {
    char* ring =
        allocate<char>(static_cast<size_t>(entry_bytes) * kStepRingSize, MemoryKind::kPinned);
    write(step, std::vector<uint64_t>{0});
    publish(queue(), {step, result_, limits, with_logprobs, with_pooled, ring, entry_bytes, word});
    drain();
    return result_view(ring, limits);
  };
  const ResultView all = published(1, 1);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(all.rows[i].id, 100 + i);
    EXPECT_EQ(all.rows[i].num_top, num_top[i]);
    for (int j = 0; j < num_top[i]; ++j) {
      EXPECT_EQ(all.top[i * kTop + j].id, 10 * i + j);
      EXPECT_EQ(all.top[i * kTop + j].logprob, -0.25f * float(j));
    }
  }
  for (int i = 0; i < kHidden; ++i) EXPECT_EQ(all.pooled[kHidden + i], float(kHidden + i + 1));
  EXPECT_EQ(all.pooled[0], 0.0f);
  EXPECT_EQ(all.pooled[2 * kHidden], 0.0f);
  const ResultView none = published(0, 0);
  EXPECT_EQ(none.header->num_spans, 3);
  EXPECT_EQ(none.rows[0].id, 0);
  EXPECT_EQ(none.top[0].id, 0);
  EXPECT_EQ(none.pooled[kHidden], 0.0f);
}

}  // namespace
}  // namespace foretoken
