#include <gtest/gtest.h>

#include <string>

#include "draft/drafter_cases.h"

namespace foretoken::test {
namespace {

SpeculativeConfig ngram_config(int num_draft_tokens) {
  SpeculativeConfig config;
  config.method = "ngram";
  config.num_speculative_tokens = num_draft_tokens;
  config.prompt_lookup_min = 1;
  config.prompt_lookup_max = 3;
  return config;
}

// Four drafters of one target, each for a sequence of its own: none disturbs another.
TEST(SeveralDrafters, DraftSideBySide) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const std::vector<DrafterCase> cases = {{.name = "draft_model"},
                                          {.name = "eagle3", .method = "eagle3"},
                                          {.name = "mtp", .method = "mtp", .num_modules = 2}};
  std::vector<SpeculativeConfig> configs;
  for (const DrafterCase& drafter : cases) configs.push_back(drafter.config(4));
  configs.push_back(ngram_config(4));
  const std::string target = cases[0].target();
  DraftRig rig(target, configs);
  std::vector<std::unique_ptr<Reference>> references;
  for (int32_t d = 0; d < 4; ++d) {
    if (d < 3)
      references.push_back(std::make_unique<Reference>(target, configs[size_t(d)], rig.params));
    rig.params.drafter = d;
    std::vector<int32_t> ids = cycle_from(d * 50, 10 + d);
    // What the n-gram drafter has to say stands in the prompt.
    if (d == 3) {
      const std::vector<int32_t> whole = cycle_from(d * 50, 90);
      ids.insert(ids.begin(), whole.begin(), whole.end());
    }
    rig.start(d, ids);
  }
  for (int step = 0; step < 15; ++step) {
    std::vector<RigSpan> spans;
    for (const int32_t slot : {1, 3, 0, 2}) {
      spans.push_back({.slot = slot,
                       .num_tokens = rig.state(slot).len - rig.state(slot).computed,
                       .num_draft_tokens = 4});
    }
    const std::vector<RigOutput> outputs = rig.step(spans);
    for (size_t i = 0; i < spans.size(); ++i) {
      const int32_t slot = spans[i].slot;
      if (slot == 3) {
        EXPECT_EQ(outputs[i].proposed.size(), 4u);
        continue;
      }
      ASSERT_EQ(outputs[i].proposed,
                references[static_cast<size_t>(slot)]->drafts(rig.tokens(slot), 4))
          << "drafter " << slot << ", step " << step;
    }
  }
}

// The blocks of a sequence that one drafter served are hit by a sequence of another: that one's
// entries are missing there and caught up, the first one's stay.
TEST(SeveralDrafters, CountEntriesApart) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const std::vector<DrafterCase> cases = {{.name = "eagle", .method = "eagle"},
                                          {.name = "eagle3", .method = "eagle3"}};
  const std::vector<SpeculativeConfig> configs = {cases[0].config(3), cases[1].config(3)};
  DraftRig rig(cases[0].target(), configs);
  const std::vector<int32_t> ids = cycle_from(17, 33);
  std::vector<int32_t> blocks;
  for (const int32_t drafter : {0, 1, 0}) {
    Reference reference(cases[0].target(), configs[static_cast<size_t>(drafter)], rig.params);
    rig.params.drafter = drafter;
    rig.start(0, ids, blocks);
    const int left = 33 - static_cast<int>(blocks.size()) * DraftRig::kBlockSize;
    // The third finds all but the last block's entries.
    const int rows = drafter == 0 && !blocks.empty() ? 2 : 64;
    const RigOutput output =
        rig.step({.slot = 0, .num_tokens = left, .num_draft_tokens = 3, .draft_rows = rows});
    ASSERT_EQ(output.proposed, reference.drafts(rig.tokens(0), 3));
    if (blocks.empty()) {
      blocks = rig.blocks(0);
      blocks.resize(4);
    }
    rig.release(0, true);
  }
}

}  // namespace
}  // namespace foretoken::test
