#include "draft/draft_history.h"

#include <gtest/gtest.h>

#include "draft/draft_context.h"
#include "draft/drafter_cases.h"

namespace foretoken::test {
namespace {

SpeculativeConfig domino_config(int drafts) {
  return DrafterCase{.name = "domino", .method = "domino", .agreement = 1}.config(drafts);
}

// The dialled unit remembers the draft before alone, in whatever it had read until then: a head
// that knows all successors drafts them all.
TEST(DraftHistory, EachDraftFollowsTheOneBefore) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  DraftRig rig(dialled_folder(dialled_target()), {domino_config(6)});
  rig.start(0, cycle_from(0, 9));
  int steps = 0, accepted = 0;
  while (rig.state(0).len < 200) {
    const int left = rig.state(0).len - rig.state(0).computed;
    accepted += rig.step({.slot = 0, .num_tokens = left, .num_draft_tokens = 6}).num_accepted;
    ++steps;
  }
  EXPECT_GE(accepted / steps, 5);
}

// States of another sequence that had the slot before are not gone on with.
TEST(DraftHistory, ASlotBeginsAnewInEachBlock) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const auto drafts_behind = [](DraftRig& rig, int64_t place) {
    rig.start(0, cycle_from(place, 9));
    const auto output = rig.step({.slot = 0, .num_tokens = 9, .num_draft_tokens = 5});
    rig.release(0);
    return output.proposed;
  };
  DraftRig used(dialled_folder(dialled_target()), {domino_config(5)});
  drafts_behind(used, 40);
  DraftRig fresh(dialled_folder(dialled_target()), {domino_config(5)});
  const auto again = drafts_behind(used, 0);
  EXPECT_EQ(again, drafts_behind(fresh, 0));
  EXPECT_EQ(again.size(), 5u);
}

}  // namespace
}  // namespace foretoken::test
