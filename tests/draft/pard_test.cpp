#include "draft/pard.h"

#include <gtest/gtest.h>

#include "draft/draft_context.h"
#include "draft/drafter_cases.h"

namespace foretoken::test {
namespace {

// Behind a mask a language model drafts what it samples there when masks are read as text.
TEST(Pard, DraftsAreWhatTheModelSaysBehindMasks) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const SpeculativeConfig config =
      DrafterCase{.name = "pard", .method = "pard", .agreement = 1}.config(3);
  DraftRig rig(dialled_folder(dialled_target()), {config});
  DraftRig plain(config.model, {});
  for (const int32_t count : {5, 9, 40}) {
    rig.start(0, cycle_from(0, count));
    const RigOutput output = rig.step({.slot = 0, .num_tokens = count, .num_draft_tokens = 3});
    std::vector<int32_t> ids = rig.tokens(0);
    for (const int32_t draft : output.proposed) {
      plain.start(0, ids);
      const auto size = static_cast<int32_t>(ids.size());
      EXPECT_EQ(plain.step({.slot = 0, .num_tokens = size, .draft_rows = 0}).committed.at(0),
                draft);
      plain.release(0);
      ids.push_back(1);
    }
    rig.release(0);
  }
}

TEST(Pard, AModelWithoutAMaskIsNamed) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const DraftContext target;
  SpeculativeConfig config = DrafterCase{.name = "draft_model"}.config(3);
  config.method = "pard";
  const auto drafter = target.make(config);
  ASSERT_FALSE(drafter.ok());
  expect_contains(drafter.status().message(), "'pard_token' is missing");
}

}  // namespace
}  // namespace foretoken::test
