#include <gtest/gtest.h>

#include <algorithm>

#include "draft/draft_context.h"
#include "draft/head_drafter.h"

namespace foretoken::test {
namespace {

TEST(Eagle3, DraftsWithThreeTaps) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const DraftContext context;
  const SpeculativeConfig config = DrafterCase{.name = "eagle3", .method = "eagle3"}.config(4);
  const auto drafter =
      make_head_drafter(context.context(config), HeadKind::kEagle3, "eagle3").value();
  EXPECT_EQ(std::string(drafter->name()), "eagle3");
  // Two heads of 32, keys and values, and three states of the target; floats.
  EXPECT_EQ(drafter->bytes_per_block(8), 8 * 4 * (2 * 2 * 32 + 3 * 64));
}

// Only ids of its own reduced vocabulary are drafted, and with draft_vocab_size of both.
TEST(Eagle3, OwnVocabularyAndTheReducedOne) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  SpeculativeConfig config;
  config.method = "eagle3";
  config.num_speculative_tokens = 3;
  config.model = dialled_head_folder(
      dialled_target(), {.kind = HeadKind::kEagle3, .agreement = 0.3, .draft_vocab_size = 90});
  std::vector<int32_t> own, both;
  for (const int size : {0, 60}) {
    config.draft_vocab_size = size;
    DraftRig rig(dialled_folder(dialled_target()), {config});
    rig.start(0, cycle_from(0, 9));
    std::vector<int32_t>& seen = size == 0 ? own : both;
    while (rig.state(0).len < 250) {
      const int left = rig.state(0).len - rig.state(0).computed;
      const RigOutput output = rig.step({.slot = 0, .num_tokens = left, .num_draft_tokens = 3});
      seen.insert(seen.end(), output.proposed.begin(), output.proposed.end());
    }
  }
  for (std::vector<int32_t>* seen : {&own, &both}) {
    std::sort(seen->begin(), seen->end());
    seen->erase(std::unique(seen->begin(), seen->end()), seen->end());
  }
  EXPECT_GT(own.size(), 40u);
  EXPECT_LE(own.size(), 90u);
  EXPECT_GT(own.back(), 60);
  EXPECT_GT(both.size(), 5u);
  EXPECT_LT(both.back(), 60);
}

}  // namespace
}  // namespace foretoken::test
