#include "draft/dspark.h"

#include <gtest/gtest.h>

#include "draft/draft_context.h"
#include "draft/drafter_cases.h"

namespace foretoken::test {
namespace {

SpeculativeConfig dspark_config(int drafts) {
  return DrafterCase{.name = "dspark", .method = "dspark", .agreement = 1}.config(drafts);
}

int accepted_a_step(const SpeculativeConfig& config, int limit) {
  DraftRig rig(dialled_folder(dialled_target()), {config});
  rig.start(0, cycle_from(0, 9));
  int steps = 0, accepted = 0;
  while (rig.state(0).len < 200) {
    const int left = rig.state(0).len - rig.state(0).computed;
    accepted += rig.step({.slot = 0, .num_tokens = left, .num_draft_tokens = limit}).num_accepted;
    ++steps;
  }
  return accepted / steps;
}

// Each draft follows the one before: a head that knows all successors drafts them all.
TEST(Dspark, AllDraftsOfADialledHeadAreRight) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  EXPECT_GE(accepted_a_step(dspark_config(6), 6), 5);
}

TEST(Dspark, UnsureDraftsAreNotProposed) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  SpeculativeConfig config = dspark_config(6);
  config.method_fields["confidence_threshold"] = 0.5;
  DraftRig rig(dialled_folder(dialled_target()), {config});
  rig.start(0, cycle_from(0, 9));
  int proposed = 0, steps = 0;
  for (; steps < 30; ++steps) {
    const int left = rig.state(0).len - rig.state(0).computed;
    const auto output = rig.step({.slot = 0, .num_tokens = left, .num_draft_tokens = 6});
    proposed += static_cast<int>(output.proposed.size());
  }
  // The dialled confidences are random.
  EXPECT_GT(proposed, 0);
  EXPECT_LT(proposed, 6 * steps * 3 / 4);
}

TEST(Dspark, Fields) {
  SpeculativeConfig config;
  EXPECT_TRUE(check_dspark_fields(config).ok());
  for (const double wrong : {-0.1, 1.0, 2.0}) {
    config.method_fields["confidence_threshold"] = wrong;
    EXPECT_FALSE(check_dspark_fields(config).ok());
  }
}

}  // namespace
}  // namespace foretoken::test
