#include "kernels/plan_layout.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken {
namespace {

int64_t offset(const void* base, const void* at) {
  return static_cast<const char*>(at) - static_cast<const char*>(base);
}

TEST(PlanLayout, PartsAreAlignedInOrderAndInside) {
  for (const PlanLimits limits : {PlanLimits{1, 1, 1, 1}, PlanLimits{7, 33, 5, 9}}) {
    std::vector<char> memory(static_cast<size_t>(plan_bytes(limits)));
    const PlanView view = plan_view(memory.data(), limits);
    const int64_t offsets[] = {
        offset(memory.data(), view.spans),         offset(memory.data(), view.inits),
        offset(memory.data(), view.block_updates), offset(memory.data(), view.tokens),
        offset(memory.data(), view.words),         plan_bytes(limits)};
    EXPECT_GE(offsets[0], int64_t{sizeof(PlanHeader)});
    EXPECT_GE(offsets[1] - offsets[0], limits.max_spans * int64_t{sizeof(SpanPlan)});
    EXPECT_GE(offsets[2] - offsets[1], limits.max_spans * int64_t{sizeof(SlotInit)});
    EXPECT_GE(offsets[3] - offsets[2], limits.max_block_updates * int64_t{sizeof(BlockUpdate)});
    EXPECT_GE(offsets[4] - offsets[3], limits.max_tokens * int64_t{sizeof(int32_t)});
    EXPECT_GE(offsets[5] - offsets[4], limits.max_words * int64_t{sizeof(uint32_t)});
    for (const int64_t at : offsets) EXPECT_EQ(at % 16, 0);
  }
}

TEST(PlanLayout, ResultPartsAreAlignedInOrderAndInside) {
  for (const ResultLimits limits :
       {ResultLimits{3, 0, 0, 0}, ResultLimits{5, 7, 3, 9}, ResultLimits{5, 7, 3, 9, 6}}) {
    std::vector<char> memory(static_cast<size_t>(result_bytes(limits)));
    const ResultView view = result_view(memory.data(), limits);
    const int64_t offsets[] = {offset(memory.data(), view.spans),
                               offset(memory.data(), view.rows),
                               offset(memory.data(), view.top),
                               offset(memory.data(), view.pooled),
                               offset(memory.data(), view.state_rows),
                               offset(memory.data(), view.states),
                               result_bytes(limits)};
    EXPECT_GE(offsets[0], int64_t{sizeof(ResultHeader)});
    EXPECT_GE(offsets[1] - offsets[0], limits.max_spans * int64_t{sizeof(SpanResult)});
    EXPECT_GE(offsets[2] - offsets[1], limits.max_rows * int64_t{sizeof(RowLogprobs)});
    EXPECT_GE(offsets[3] - offsets[2],
              limits.max_rows * limits.max_top * int64_t{sizeof(TopLogprob)});
    EXPECT_GE(offsets[4] - offsets[3], limits.max_spans * limits.hidden * int64_t{sizeof(float)});
    const int64_t spans = limits.max_states > 0 ? limits.max_spans : 0;
    EXPECT_GE(offsets[5] - offsets[4], spans * int64_t{sizeof(RowsOfStates)});
    EXPECT_GE(offsets[6] - offsets[5], limits.max_states * limits.hidden * int64_t{sizeof(float)});
    for (const int64_t at : offsets) EXPECT_EQ(at % 16, 0);
  }
}

}  // namespace
}  // namespace foretoken
