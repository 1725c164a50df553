#include "engine/step/agreed_step.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(AgreedStep, WishesForThePassesOfDraftersWithEntries) {
  StepShape shape{.max_rows = 16, .lane_rows = 8};
  shape.drafts[0] = {3, 8, 4};
  shape.drafts[1] = {0, 32, 0};  // it only catches up
  shape.drafts[2] = {5, 0, 4};   // it looks drafts up
  const group::StepShapeWish wish = wish_of(shape);
  EXPECT_EQ(wish.rows, 16u);
  EXPECT_EQ(wish.lane_rows, 8u);
  EXPECT_EQ(wish.drafts[0], (group::DraftPassesWish{3, 8, 4}));
  EXPECT_EQ(wish.drafts[1], (group::DraftPassesWish{0, 32, 0}));
  EXPECT_EQ(wish.drafts[2], (group::DraftPassesWish{}));
  EXPECT_EQ(wish.drafts[3], (group::DraftPassesWish{}));
}

TEST(AgreedStep, AnEmptyStepRunsThePassesOfTheOthers) {
  group::StepShapeWish agreed{.rows = 16};
  agreed.without_graph = true;
  agreed.drafts[0] = {3, 8, 4};
  agreed.drafts[1] = {0, 32, 0};
  const StepShape shape = with_passes_of({.max_rows = 1, .launch = StepLaunch::kGraph}, agreed);
  EXPECT_EQ(shape.max_rows, 16);
  EXPECT_EQ(shape.launch, StepLaunch::kOps);
  EXPECT_EQ(shape.drafts[0], (DraftShape{3, 8, 4}));
  EXPECT_EQ(shape.drafts[1], (DraftShape{0, 32, 0}));
  EXPECT_EQ(shape.drafts[2], (DraftShape{}));
}

// Kernels are bounded alike on all ranks; what goes through no layers stays each one's own.
TEST(AgreedStep, AStepTakesTheBoundsOfTheFullest) {
  StepShape shape{.max_rows = 8, .lane_rows = 4};
  shape.drafts[0] = {2, 16, 8};
  shape.drafts[1] = {5, 0, 4};
  group::StepShapeWish agreed{.rows = 16};
  agreed.drafts[0] = {4, 16, 8};
  const StepShape together = with_passes_of(shape, agreed);
  EXPECT_EQ(together.max_rows, 16);
  EXPECT_EQ(together.lane_rows, 0) << "another engine's step is in one";
  EXPECT_EQ(together.launch, shape.launch);
  EXPECT_EQ(together.drafts[0], (DraftShape{4, 16, 8}));
  EXPECT_EQ(together.drafts[1], (DraftShape{5, 0, 4}));
}

}  // namespace
}  // namespace foretoken
