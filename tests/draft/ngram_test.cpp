#include "draft/ngram.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>

#include "kernels/ngram.h"

namespace foretoken {
namespace {

// Keeps the arguments of the op that a drafter enqueues.
class RecordingQueue final : public Queue {
 public:
  void launch_op(uint16_t op, const void* args, size_t args_bytes) override {
    ++num_ops;
    ASSERT_EQ(op, static_cast<uint16_t>(NgramArgs::kOp));
    ASSERT_EQ(args_bytes, sizeof last);
    std::memcpy(&last, args, sizeof last);
  }
  void copy(void*, const void*, size_t) override { ADD_FAILURE(); }
  void fill(void*, int, size_t) override { ADD_FAILURE(); }
  void call_host(void (*)(void*), void*) override { ADD_FAILURE(); }
  void record(Event, uint64_t) override { ADD_FAILURE(); }
  void begin_capture() override {}
  std::unique_ptr<Graph> end_capture() override { return nullptr; }
  void replay(Graph&) override {}
  Status wait(Event, uint64_t, std::chrono::milliseconds) override { return {}; }
  Status drain() override { return {}; }

  int num_ops = 0;
  NgramArgs last{};
};

NgramArgs proposed_with(const SpeculativeConfig& config) {
  const auto drafter = make_ngram_drafter(config);
  EXPECT_TRUE(drafter.ok()) << drafter.status().message();
  RecordingQueue queue;
  if (!drafter.ok()) return queue.last;
  DraftStep step;
  int32_t plan = 0;
  SlotState slot{};
  step.plan = &plan;
  step.limits = {.max_spans = 3, .max_tokens = 4, .max_block_updates = 5, .max_words = 6};
  step.batch.slots = &slot;
  step.batch.block_size = 16;
  drafter.value()->propose(queue, step);
  EXPECT_EQ(queue.num_ops, 1);
  EXPECT_EQ(queue.last.plan, &plan);
  EXPECT_EQ(queue.last.batch.slots, &slot);
  EXPECT_EQ(queue.last.limits.max_spans, 3);
  return queue.last;
}

TEST(NgramDrafter, ProposesWithItsBounds) {
  const NgramArgs args = proposed_with({"ngram", 4, 2, 6});
  EXPECT_EQ(args.num_drafts, 4);
  EXPECT_EQ(args.min_n, 2);
  EXPECT_EQ(args.max_n, 6);
}

TEST(NgramDrafter, UnsetBoundsFollowTheOtherOrFive) {
  const NgramArgs none = proposed_with({"ngram", 1, 0, 0});
  EXPECT_EQ(none.min_n, 5);
  EXPECT_EQ(none.max_n, 5);
  const NgramArgs only_max = proposed_with({"ngram", 1, 0, 7});
  EXPECT_EQ(only_max.min_n, 7);
  EXPECT_EQ(only_max.max_n, 7);
  const NgramArgs only_min = proposed_with({"ngram", 1, 2, 0});
  EXPECT_EQ(only_min.min_n, 2);
  EXPECT_EQ(only_min.max_n, 2);
}

TEST(NgramDrafter, NeedsNoMemoryOfItsOwn) {
  EXPECT_EQ(make_ngram_drafter({"ngram", 16, 1, 4}).value()->memory_bytes(), 0);
}

TEST(NgramDrafter, RefusesBoundsOutOfOrder) {
  for (const auto& [low, high] : {std::pair{3, 2}, {-1, 2}, {1, 65}, {-2, -1}, {65, 0}}) {
    const auto drafter = make_ngram_drafter({"ngram", 4, low, high});
    EXPECT_EQ(drafter.status().code(), StatusCode::kInvalidArgument) << low << " " << high;
    EXPECT_NE(drafter.status().message().find("1 <= min <= max <= 64"), std::string::npos);
  }
}

}  // namespace
}  // namespace foretoken
