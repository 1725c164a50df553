#include "engine/step/shape/step_shape.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/attention/attention.h"
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

TEST(StepShapes, BetweenLargeSizesOneMoreEach) {
  const StepShapes shapes(5000, 8, 56, {});
  EXPECT_EQ(shapes.row_buckets(), (std::vector<int>{1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 384, 512,
                                                    768, 1024, 1536, 2048, 4096, 5000}));
}

TEST(StepShapes, SizesOfGraphsComeBeforeThoseOfOps) {
  const StepShapes shapes(48, 8, 56, {}, {GraphMode::kFullAndPiecewise, {1, 6, 20, 64}});
  EXPECT_EQ(shapes.row_buckets(), (std::vector<int>{1, 6, 20, 32, 48}));
  StepPlan plan;
  const auto of = [&](int rows, int new_ids) {
    plan.num_rows = rows;
    plan.num_new_ids = new_ids;
    const StepShape shape = shapes.of(plan);
    return std::pair(shape.max_rows, shape.launch);
  };
  EXPECT_EQ(of(5, 0), std::pair(6, StepLaunch::kGraph));
  EXPECT_EQ(of(20, 12), std::pair(20, StepLaunch::kPieces));
  EXPECT_EQ(of(21, 0), std::pair(32, StepLaunch::kOps));
  EXPECT_EQ(of(48, 9), std::pair(48, StepLaunch::kOps));
}

TEST(StepShapes, TwoLanesFromTheThresholdsOn) {
  const StepShapes shapes(64, 8, 56, {}, {},
                          {.enabled = true, .decode_rows = 6, .prefill_rows = 12});
  StepPlan plan;
  const auto lane_rows = [&](std::vector<int> spans, int new_ids) {
    plan.spans.clear();
    plan.num_rows = 0;
    for (const int rows : spans) {
      plan.spans.push_back({.num_tokens = 1, .max_verified = rows - 1});
      plan.num_rows += rows;
    }
    plan.num_new_ids = new_ids;
    return shapes.of(plan).lane_rows;
  };
  EXPECT_EQ(lane_rows({1, 1, 1, 1, 1}, 0), 0);
  EXPECT_EQ(lane_rows({1, 1, 1, 1, 1, 1}, 0), 4);
  EXPECT_EQ(lane_rows({4, 4}, 0), 4);
  EXPECT_EQ(lane_rows({8}, 0), 0) << "a lone sequence";
  EXPECT_EQ(lane_rows({1, 9}, 8), 0);
  EXPECT_EQ(lane_rows({1, 1, 30}, 29), 32) << "the larger lane";
  plan.features = kHasAdapters;
  EXPECT_EQ(lane_rows({4, 4}, 0), 0);
}

TEST(StepShapes, StepsInPiecesStayInOneLane) {
  const StepShapes shapes(64, 8, 56, {}, {GraphMode::kFullAndPiecewise, {}},
                          {.enabled = true, .decode_rows = 2, .prefill_rows = 2});
  StepPlan plan;
  plan.spans.resize(2);
  for (Span& span : plan.spans) span.num_tokens = 4;
  plan.num_rows = 8;
  EXPECT_EQ(shapes.of(plan).lane_rows, 4);
  plan.num_new_ids = 8;
  EXPECT_EQ(shapes.of(plan).lane_rows, 0);
}

TEST(StepShapes, TheUsualStepsAreInTheLanesThatPlansGet) {
  test::FakeDrafter drafter({.has_kv = true, .max_draft_tokens = 3});
  const StepShapes shapes(16, 4, 56, {&drafter}, {},
                          {.enabled = true, .decode_rows = 8, .prefill_rows = 16});
  StepPlan plan;
  plan.spans.resize(4);
  for (Span& span : plan.spans) span = {.num_tokens = 1, .max_verified = 3};
  plan.num_rows = 16;
  const StepShape planned = shapes.of(plan);
  EXPECT_EQ(planned.lane_rows, 8);
  int found = 0;
  for (const StepShape& shape : shapes.usual()) {
    found += shape.max_rows == 16 && shape.lane_rows == 8 && shape.launch == planned.launch;
    EXPECT_TRUE(shape.max_rows >= 8 || shape.lane_rows == 0);
  }
  EXPECT_GE(found, 2) << "with and without drafts";
}

TEST(StepPlan, IsCutWhereTheLargerLaneIsSmallest) {
  StepPlan plan;
  const auto cut = [&](std::vector<int> rows) {
    plan.clear();
    for (const int each : rows) {
      plan.spans.push_back({.num_tokens = each});
      plan.num_rows += each;
    }
    const LaneCut found = plan.lane_cut();
    return std::pair(found.num_spans, found.max_rows);
  };
  EXPECT_EQ(cut({}), std::pair(0, 0));
  EXPECT_EQ(cut({7}), std::pair(1, 7));
  EXPECT_EQ(cut({1, 1, 1, 1}), std::pair(2, 2));
  EXPECT_EQ(cut({1, 1, 1}), std::pair(1, 2));
  EXPECT_EQ(cut({1, 20, 1}), std::pair(1, 21));
  EXPECT_EQ(cut({30, 1, 1}), std::pair(1, 30));
}

TEST(StepShapes, TheLongestSpanTellsTheRuns) {
  const StepShapes shapes(512, 8, 56, {});
  StepPlan plan;
  plan.num_rows = 72;
  plan.spans = {{.num_tokens = kShortRun}, {.num_tokens = 1, .max_verified = kShortRun - 1}};
  EXPECT_EQ(shapes.of(plan).runs, RunLengths::kShort);
  Sequence sequence;
  sequence.num_scheduled = kFarBehind + kShortRun;
  plan.spans.push_back({.sequence = &sequence, .num_tokens = kShortRun + 1});
  EXPECT_EQ(shapes.of(plan).runs, RunLengths::kLong);
  ++sequence.num_scheduled;
  EXPECT_EQ(shapes.of(plan).runs, RunLengths::kFar);
}

TEST(StepShapes, RowsOfALongPromptSeeMuch) {
  const StepShapes shapes(8192, 8, 56, {});
  StepPlan plan;
  const auto runs = [&](int rows) {
    plan.spans = {{.num_tokens = rows}};
    plan.num_rows = rows;
    return shapes.of(plan).runs;
  };
  EXPECT_EQ(runs(2 * kFarBehind), RunLengths::kLong);
  EXPECT_EQ(runs(2 * kFarBehind + 1), RunLengths::kFar);
}

TEST(StepShapes, WideStepsAreRecordedWithAndWithoutPrompts) {
  using enum RunLengths;
  std::vector<std::pair<int, RunLengths>> found;
  const StepShapes shapes(256, 64, 56, {}, {GraphMode::kFull, {32, 64, 256}});
  for (const StepShape& shape : shapes.usual()) found.emplace_back(shape.max_rows, shape.runs);
  // 64 sequences decode at most.
  EXPECT_EQ(found, (std::vector<std::pair<int, RunLengths>>{
                       {32, kShort}, {64, kLong}, {64, kShort}, {256, kLong}}));
}

TEST(StepShapes, UsualStepsOfEveryMode) {
  test::FakeDrafter drafter({.has_kv = true, .max_draft_tokens = 3});
  const auto usual = [&](GraphMode mode, std::vector<Drafter*> drafters, std::vector<int> sizes) {
    std::vector<std::pair<int, StepLaunch>> found;
    for (const StepShape& shape : StepShapes(48, 3, 56, drafters, {mode, sizes}).usual()) {
      found.emplace_back(shape.max_rows, shape.launch);
    }
    return found;
  };
  using enum StepLaunch;
  using Found = std::vector<std::pair<int, StepLaunch>>;
  EXPECT_EQ(usual(GraphMode::kNone, {&drafter}, {}), Found{});
  EXPECT_EQ(usual(GraphMode::kFull, {}, {2, 8}), (Found{{2, kGraph}, {8, kGraph}}));
  EXPECT_EQ(usual(GraphMode::kPiecewise, {}, {2, 8}), (Found{{2, kPieces}, {8, kPieces}}));
  // Three sequences decode at most.
  EXPECT_EQ(usual(GraphMode::kFullDecodeOnly, {}, {}),
            (Found{{1, kGraph}, {2, kGraph}, {4, kGraph}}));
  EXPECT_EQ(usual(GraphMode::kFullAndPiecewise, {}, {2, 4, 8}),
            (Found{{2, kPieces}, {2, kGraph}, {4, kPieces}, {4, kGraph}, {8, kPieces}}));
  // One and two sequences with all drafts.
  EXPECT_EQ(usual(GraphMode::kPiecewise, {&drafter}, {8}),
            (Found{{8, kPieces}, {8, kPieces}, {8, kPieces}}));
}

TEST(StepShapes, ADrafterWithKvHasItsPassesAndRoundedBounds) {
  test::FakeDrafter drafter({.has_kv = true, .max_draft_tokens = 5});
  const StepShapes shapes(48, 8, 56, {&drafter});
  const auto of = [&](const DraftUse& use) { return shapes.of(use, drafter.traits()); };
  EXPECT_EQ(of({}), DraftShape{});
  EXPECT_EQ(of({.num_draft_tokens = 3, .catch_up_rows = 17, .num_spans = 5}),
            (DraftShape{3, 32, 8}));
  EXPECT_EQ(of({.num_draft_tokens = 1, .catch_up_rows = 50, .num_spans = 1}),
            (DraftShape{1, 56, 1}));
  EXPECT_EQ(of({.num_draft_tokens = 0, .catch_up_rows = 4, .num_spans = 0}), (DraftShape{0, 4, 0}));
}

TEST(StepShapes, ADrafterWithoutKvRoundsItsSequencesOnly) {
  test::FakeDrafter drafter({.one_pass = true, .max_draft_tokens = 5});
  const StepShapes shapes(48, 8, 56, {&drafter});
  const auto of = [&](const DraftUse& use) { return shapes.of(use, drafter.traits()); };
  EXPECT_EQ(of({}), DraftShape{});
  EXPECT_EQ(of({.num_draft_tokens = 1, .catch_up_rows = 0, .num_spans = 1}), (DraftShape{5, 0, 1}));
  EXPECT_EQ(of({.num_draft_tokens = 5, .catch_up_rows = 0, .num_spans = 5}), (DraftShape{5, 0, 8}));
}

TEST(StepShapes, ADrafterThatLearnsIsCalledInEveryStep) {
  test::FakeDrafter drafter({.learns = true, .one_pass = true, .max_draft_tokens = 5});
  const StepShapes shapes(48, 8, 56, {&drafter});
  StepPlan plan;
  plan.num_rows = 3;
  EXPECT_EQ(shapes.of(plan).drafts[0], (DraftShape{0, 0, 1}));
  plan.drafts[0] = {.num_draft_tokens = 1, .catch_up_rows = 0, .num_spans = 3};
  EXPECT_EQ(shapes.of(plan).drafts[0], (DraftShape{5, 0, 4}));
  for (const StepShape& shape : shapes.usual()) EXPECT_NE(shape.drafts[0], DraftShape{});
}

// On a device whose kernels cost a small step much: in one of four plain steps, and in each that
// may end a sequence or verifies drafts.
TEST(StepShapes, ALearnerThatRestsIsCalledInSomePlainSteps) {
  test::FakeDrafter drafter({.learns = true, .one_pass = true, .max_draft_tokens = 5});
  const StepShapes shapes(48, 8, 56, {&drafter}, {.steps_between_lessons = 4});
  Sequence sequence;
  sequence.max_len = 100;
  sequence.prompt_len = 10;
  sequence.tokens.assign(20, 1);
  StepPlan plan;
  plan.spans = {{.sequence = &sequence, .num_tokens = 1}};
  plan.num_rows = 1;
  const auto is_called = [&](uint64_t step) {
    plan.step = step;
    return shapes.of(plan).drafts[0] != DraftShape{};
  };
  EXPECT_TRUE(is_called(8));
  for (const uint64_t step : {9, 10, 11}) EXPECT_FALSE(is_called(step)) << step;
  plan.num_new_ids = 1;
  EXPECT_TRUE(is_called(9)) << "a prompt";
  plan.num_new_ids = 0;
  plan.num_rows = 2;
  EXPECT_TRUE(is_called(9)) << "drafts are verified";
  plan.num_rows = 1;
  plan.drafts[0] = {.num_draft_tokens = 2, .catch_up_rows = 0, .num_spans = 1};
  EXPECT_TRUE(is_called(9)) << "it drafts";
  plan.drafts[0] = {};
  sequence.inflight_bound = 80;
  EXPECT_TRUE(is_called(9)) << "the sequence may end";
}

// What a first round meets needs no graph of its own: any limit for any of the sequences.
TEST(StepShapes, StepsOfALookupAreRecordedAtStart) {
  test::FakeDrafter drafter({.learns = true, .one_pass = true, .max_draft_tokens = 8});
  const StepShapes shapes(512, 16, 56, {&drafter}, {.steps_between_lessons = 4});
  const std::vector<StepShape> usual = shapes.usual();
  for (int seqs = 1; seqs <= 16; ++seqs) {
    for (int with_room = 0; with_room <= seqs; ++with_room) {
      for (int drafts = 1; drafts <= 8; ++drafts) {
        StepPlan plan;
        plan.step = 4;
        plan.spans.assign(static_cast<size_t>(seqs), {.num_tokens = 1});
        plan.num_rows = seqs + with_room * drafts;
        if (with_room > 0) plan.drafts[0] = {drafts, 0, with_room};
        EXPECT_NE(std::find(usual.begin(), usual.end(), shapes.of(plan)), usual.end())
            << with_room << " of " << seqs << " sequences, " << drafts << " drafts";
        plan.step = 5;
        EXPECT_NE(std::find(usual.begin(), usual.end(), shapes.of(plan)), usual.end())
            << with_room << " of " << seqs << " sequences, " << drafts << " drafts";
      }
    }
  }
  EXPECT_LE(usual.size(), 60u);
  for (const StepShape& shape : usual) {
    EXPECT_EQ(std::count(usual.begin(), usual.end(), shape), 1) << shape.max_rows << " rows";
  }
}

TEST(StepShapes, ADrafterWithoutKvThatTakesAPassADraftHasTheOnesItNeeds) {
  test::FakeDrafter drafter({.max_draft_tokens = 5});
  const StepShapes shapes(48, 8, 56, {&drafter});
  const auto of = [&](const DraftUse& use) { return shapes.of(use, drafter.traits()); };
  EXPECT_EQ(of({}), DraftShape{});
  EXPECT_EQ(of({.num_draft_tokens = 2, .catch_up_rows = 0, .num_spans = 3}), (DraftShape{2, 0, 4}));
}

TEST(StepShapes, TheUsualStepsOfADrafter) {
  test::FakeDrafter head({.has_kv = true, .max_draft_tokens = 3});
  test::FakeDrafter model({.has_kv = true, .keeps_written = true, .max_draft_tokens = 3});
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
  std::vector<StepShape> others(8, base);
  others[0].max_rows = 16;
  others[1].features = 3;
  others[2].drafts[0].num_draft_tokens = 3;
  others[3].drafts[0].max_catch_up_rows = 16;
  others[4].drafts[0].max_spans = 8;
  std::swap(others[5].drafts[0], others[5].drafts[1]);
  others[6].launch = StepLaunch::kGraph;
  others[7].runs = RunLengths::kLong;
  const StepShapeHash hash;
  for (const StepShape& other : others) {
    EXPECT_NE(other, base);
    EXPECT_NE(hash(other), hash(base));
  }
  EXPECT_EQ(hash(StepShape(base)), hash(base));
}

}  // namespace
}  // namespace foretoken
