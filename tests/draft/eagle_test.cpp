#include <gtest/gtest.h>

#include "draft/draft_context.h"
#include "draft/head_drafter.h"

namespace foretoken::test {
namespace {

TEST(Eagle, DraftsWithOneLayerAndOneTap) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const DraftContext context;
  const SpeculativeConfig config = DrafterCase{.name = "eagle", .method = "eagle"}.config(4);
  const auto drafter =
      make_head_drafter(context.context(config), HeadKind::kEagle, "eagle").value();
  EXPECT_EQ(std::string(drafter->name()), "eagle");
  EXPECT_EQ(drafter->traits().max_draft_tokens, 4);
  // Two heads of 16, keys and values, and the target's last state; floats.
  EXPECT_EQ(drafter->bytes_per_block(8), 8 * 4 * (2 * 2 * 16 + 64));
}

// The reduced vocabulary applies to the output matrix that a head brings along.
TEST(Eagle, ReducedVocabulary) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  DrafterCase drafter{.name = "eagle", .method = "eagle"};
  drafter.draft_vocab_size = 40;
  DraftRig rig(drafter.target(), {drafter.config(3)});
  rig.start(0, cycle_from(0, 9));
  for (int step = 0; step < 30; ++step) {
    const int left = rig.state(0).len - rig.state(0).computed;
    const RigOutput output = rig.step({.slot = 0, .num_tokens = left, .num_draft_tokens = 3});
    ASSERT_EQ(output.proposed.size(), 3u);
    for (const int32_t id : output.proposed) ASSERT_LT(id, 40);
  }
  expect_follows_cycle(rig.tokens(0), 9);
}

}  // namespace
}  // namespace foretoken::test
