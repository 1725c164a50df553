#include "engine/step_shape.h"

#include <gtest/gtest.h>

#include "support/fake_drafter.h"

namespace foretoken {
namespace {

TEST(StepShapes, RowsDoubleUpToTheLargestStep) {
  const StepShapes shapes(48, 8, 56, {});
  EXPECT_EQ(shapes.row_buckets(), (std::vector<int>{1, 2, 4, 8, 16, 32, 48}));
  StepPlan plan;
  const auto rows_of = [&](int rows) {
    plan.num_rows = rows;
    return shapes.of(plan).max_rows;
  };
  EXPECT_EQ(rows_of(1), 1);
  EXPECT_EQ(rows_of(3), 4);
  EXPECT_EQ(rows_of(32), 32);
  EXPECT_EQ(rows_of(33), 48);
  plan.features = kPools | kShapesLogits;
  EXPECT_EQ(shapes.of(plan).features, plan.features);
}

TEST(StepShapes, ADrafterWithKvHasItsPassesAndRoundedBounds) {
  test::FakeDrafter drafter({.has_kv = true, .max_drafts = 5});
  const StepShapes shapes(48, 8, 56, {&drafter});
  const auto of = [&](const DraftUse& use) { return shapes.of(use, drafter.traits()); };
  EXPECT_EQ(of({}), DraftShape{});
  EXPECT_EQ(of({.num_passes = 3, .catch_up_rows = 17, .num_spans = 5}), (DraftShape{3, 32, 8}));
  EXPECT_EQ(of({.num_passes = 1, .catch_up_rows = 50, .num_spans = 1}), (DraftShape{1, 56, 1}));
  EXPECT_EQ(of({.num_passes = 0, .catch_up_rows = 4, .num_spans = 0}), (DraftShape{0, 4, 0}));
}

TEST(StepShapes, ADrafterWithoutKvHasOneShape) {
  test::FakeDrafter drafter({.one_pass = true, .max_drafts = 5});
  const StepShapes shapes(48, 8, 56, {&drafter});
  const auto of = [&](const DraftUse& use) { return shapes.of(use, drafter.traits()); };
  EXPECT_EQ(of({}), DraftShape{});
  EXPECT_EQ(of({.num_passes = 1, .catch_up_rows = 0, .num_spans = 1}),
            of({.num_passes = 5, .catch_up_rows = 0, .num_spans = 8}));
  EXPECT_EQ(of({.num_passes = 1, .catch_up_rows = 0, .num_spans = 1}).num_passes, 5);
}

TEST(StepShapes, TheUsualStepsOfADrafter) {
  test::FakeDrafter head({.has_kv = true, .max_drafts = 3});
  test::FakeDrafter model({.has_kv = true, .keeps_written = true, .max_drafts = 3});
  const StepShapes shapes(30, 8, 38, {&head, &model});
  const auto heads = shapes.of_decoding(0);
  ASSERT_EQ(heads.size(), 3u);  // 8 sequences want 32 rows
  EXPECT_EQ(heads[0].max_rows, 4);
  EXPECT_EQ(heads[0].drafts[0], (DraftShape{3, 4, 1}));
  EXPECT_EQ(heads[2].max_rows, 16);
  EXPECT_EQ(heads[2].drafts[0], (DraftShape{3, 16, 4}));
  EXPECT_EQ(shapes.of_decoding(1)[2].drafts[1], (DraftShape{3, 8, 4}));
  EXPECT_EQ(shapes.of_decoding(1)[2].drafts[0], DraftShape{});
}

TEST(StepShapes, EveryFieldTellsShapesApart) {
  const StepShape base{.max_rows = 8, .features = 1, .drafts = {DraftShape{2, 8, 4}}};
  std::vector<StepShape> others(6, base);
  others[0].max_rows = 16;
  others[1].features = 3;
  others[2].drafts[0].num_passes = 3;
  others[3].drafts[0].max_catch_up_rows = 16;
  others[4].drafts[0].max_spans = 8;
  std::swap(others[5].drafts[0], others[5].drafts[1]);
  const StepShapeHash hash;
  for (const StepShape& other : others) {
    EXPECT_NE(other, base);
    EXPECT_NE(hash(other), hash(base));
  }
  EXPECT_EQ(hash(StepShape(base)), hash(base));
}

}  // namespace
}  // namespace foretoken
