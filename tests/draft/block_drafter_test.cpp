#include "draft/block_drafter.h"

#include <gtest/gtest.h>

#include "draft/draft_context.h"
#include "draft/drafter_cases.h"
#include "support/folders.h"

namespace foretoken::test {
namespace {

SpeculativeConfig block_config(int drafts) {
  return DrafterCase{.name = "dflash", .method = "dflash"}.config(drafts);
}

TEST(BlockDrafter, DraftsAsManyAsItsBlockHas) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const DraftContext target;
  const int taken[][2] = {{0, kMaxOwnDrafts}, {1, 1}, {7, 7}};
  for (const auto& [asked, expected] : taken) {
    const SpeculativeConfig config = block_config(asked);
    const auto drafter = target.make(config);
    ASSERT_TRUE(drafter.ok()) << drafter.status().message();
    EXPECT_EQ(drafter.value()->traits().max_draft_tokens, expected);
  }
  SpeculativeConfig config = block_config(6);
  config.model = std::string(foretoken::kSourceFolder) + "/tests/golden/block_heads/dflash";
  const auto other = target.make(config);
  ASSERT_FALSE(other.ok());
  expect_contains(other.status().message(), "hidden_size");
}

TEST(BlockDrafter, KeepsKeysValuesAndTaps) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const DraftContext target;
  const SpeculativeConfig config = block_config(4);
  const auto drafter = target.make(config).value();
  // Two layers with two heads of 32, keys and values, and two states of the target; floats.
  EXPECT_EQ(drafter->bytes_per_block(8), 8 * 4 * (2 * 2 * 2 * 32 + 2 * 64));
  EXPECT_GT(drafter->memory_bytes(), 0);
  EXPECT_EQ(drafter->kv_cache(), nullptr);
}

// A sequence's drafts do not depend on who drafts beside it, nor on how many drafts they want.
TEST(BlockDrafter, BlocksOfDifferentLengthsSideBySide) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const SpeculativeConfig config = block_config(8);
  const std::string folder = dialled_folder(dialled_target());
  const auto span = [](int slot, int limit) {
    return RigSpan{.slot = slot, .num_tokens = 9 + slot, .num_draft_tokens = limit};
  };
  DraftRig together(folder, {config});
  for (int slot = 0; slot < 3; ++slot) together.start(slot, cycle_from(slot * 20, 9 + slot));
  const auto outputs = together.step({span(0, 8), span(1, 0), span(2, 3)});
  for (const int slot : {0, 2}) {
    DraftRig alone(folder, {config});
    alone.start(0, cycle_from(slot * 20, 9 + slot));
    RigSpan own = span(slot, slot == 0 ? 8 : 3);
    own.slot = 0;
    EXPECT_EQ(alone.step(own).proposed, outputs[static_cast<size_t>(slot)].proposed);
  }
  EXPECT_TRUE(outputs[1].proposed.empty());
  EXPECT_EQ(outputs[2].proposed.size(), 3u);
}

}  // namespace
}  // namespace foretoken::test
