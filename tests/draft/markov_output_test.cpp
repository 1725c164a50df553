#include "draft/markov_output.h"

#include <gtest/gtest.h>

#include <utility>

#include "draft/draft_context.h"
#include "draft/drafter_cases.h"

namespace foretoken::test {
namespace {

// Drafts of one sequence are the same beside others that want more or fewer.
TEST(MarkovOutput, SequencesDoNotMix) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  for (const auto& [method, probabilistic] :
       {std::pair{"dspark", false}, {"dspark", true}, {"domino", false}, {"domino", true}}) {
    SCOPED_TRACE(method);
    const SpeculativeConfig config =
        DrafterCase{.name = method, .method = method, .probabilistic = probabilistic}.config(5);
    const auto spans = [](int first, int last) {
      std::vector<RigSpan> all;
      for (int slot = first; slot <= last; ++slot) {
        all.push_back({.slot = slot, .num_tokens = 9 + slot, .num_draft_tokens = 5 - slot});
      }
      return all;
    };
    const auto begin = [&](DraftRig& rig, int slot) {
      rig.params.temperature = probabilistic ? 1.5f : 0;
      rig.params.seed = 5;
      rig.start(slot, cycle_from(slot * 30, 9 + slot));
    };
    DraftRig together(dialled_folder(dialled_target()), {config});
    for (int slot = 0; slot < 4; ++slot) begin(together, slot);
    const auto outputs = together.step(spans(0, 3));
    for (int slot = 0; slot < 4; ++slot) {
      DraftRig alone(dialled_folder(dialled_target()), {config});
      begin(alone, slot);
      const auto own = alone.step(spans(slot, slot));
      EXPECT_EQ(own[0].proposed, outputs[static_cast<size_t>(slot)].proposed);
      EXPECT_EQ(own[0].proposed.size(), static_cast<size_t>(5 - slot));
    }
  }
}

}  // namespace
}  // namespace foretoken::test
