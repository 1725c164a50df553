#include "kernels/plan_layout.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken {
namespace {

int64_t offset(const void* base, const void* at) {
  return static_cast<const char*>(at) - static_cast<const char*>(base);
}

TEST(PlanLayout, PartsAreAlignedInOrderAndInside) {
  for (const PlanLimits limits : {PlanLimits{1, 1, 1}, PlanLimits{7, 33, 5}}) {
    std::vector<char> memory(static_cast<size_t>(plan_bytes(limits)));
    const PlanView view = plan_view(memory.data(), limits);
    const int64_t offsets[] = {offset(memory.data(), view.spans), offset(memory.data(), view.inits),
                               offset(memory.data(), view.block_updates),
                               offset(memory.data(), view.tokens), plan_bytes(limits)};
    EXPECT_GE(offsets[0], int64_t{sizeof(PlanHeader)});
    EXPECT_GE(offsets[1] - offsets[0], limits.max_spans * int64_t{sizeof(SpanPlan)});
    EXPECT_GE(offsets[2] - offsets[1], limits.max_spans * int64_t{sizeof(SlotInit)});
    EXPECT_GE(offsets[3] - offsets[2], limits.max_block_updates * int64_t{sizeof(BlockUpdate)});
    EXPECT_GE(offsets[4] - offsets[3], limits.max_tokens * int64_t{sizeof(int32_t)});
    for (const int64_t at : offsets) EXPECT_EQ(at % 16, 0);
  }
}

TEST(PlanLayout, ResultFits) {
  const PlanLimits limits{3, 1, 1};
  std::vector<char> memory(static_cast<size_t>(result_bytes(limits)));
  const ResultView view = result_view(memory.data());
  EXPECT_EQ(offset(memory.data(), view.spans) % 16, 0);
  EXPECT_LE(offset(memory.data(), view.spans + 3), result_bytes(limits));
}

}  // namespace
}  // namespace foretoken
