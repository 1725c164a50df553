#include "draft/parts/drafter.h"

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

TEST(DraftShape, AtRestByDefault) {
  const DraftShape shape;
  EXPECT_EQ(shape, (DraftShape{0, 0, 0}));
  EXPECT_NE(shape, (DraftShape{0, 1, 0}));
}

TEST(DrafterTraits, NothingByDefault) {
  const DrafterTraits traits;
  EXPECT_FALSE(traits.has_kv || traits.keeps_written || traits.one_pass);
  EXPECT_EQ(traits.max_draft_tokens, 0);
  EXPECT_EQ(traits.max_len, std::numeric_limits<int>::max());
}

}  // namespace
}  // namespace foretoken
