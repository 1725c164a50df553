#include "draft/drafter.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace foretoken {
namespace {

// A drafter is reached through its interface alone and copied into no op.
static_assert(std::is_abstract_v<Drafter> && std::has_virtual_destructor_v<Drafter>);
static_assert(std::is_trivially_copyable_v<DraftStep>);

TEST(DraftStep, StartsEmpty) {
  const DraftStep step;
  EXPECT_EQ(step.plan, nullptr);
  EXPECT_EQ(step.batch.slots, nullptr);
  EXPECT_EQ(step.tensors.counts, nullptr);
  EXPECT_EQ(step.limits.max_spans, 0);
}

}  // namespace
}  // namespace foretoken
