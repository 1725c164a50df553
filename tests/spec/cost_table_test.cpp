#include "spec/cost_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "spec/touched_experts.h"
#include "support/time_curve.h"

namespace foretoken {
namespace {

using test::curve;

CostTable some_times() {
  CostTable times;
  times.target = curve({{1, 1000}, {8, 1700}, {64, 12900}});
  times.drafters.push_back({.name = "eagle3",
                            .one_pass = false,
                            .catch_up = curve({{1, 100}, {64, 730}}),
                            .pass = curve({{1, 80}, {16, 230}})});
  times.drafters.push_back(
      {.name = "ngram", .one_pass = true, .catch_up = {}, .pass = curve({{1, 7}})});
  return times;
}

TEST(CostTable, CurvesAreLinearBetweenPointsAndBeyondTheLast) {
  const TimeCurve times = curve({{2, 100}, {4, 300}, {8, 340}});
  EXPECT_EQ(times.at(0), 0);
  EXPECT_EQ(times.at(1), 100);
  EXPECT_EQ(times.at(2), 100);
  EXPECT_EQ(times.at(3), 200);
  EXPECT_EQ(times.at(4), 300);
  EXPECT_EQ(times.at(5), 310);
  EXPECT_EQ(times.at(8), 340);
  EXPECT_EQ(times.at(16), 420);
  EXPECT_EQ(TimeCurve().at(5), 0);
  EXPECT_EQ(curve({{4, 50}}).at(400), 50);
}

// What rows touch of 64 experts, six each: the lines between measured points lie up to 4 % below.
TEST(CostTable, CurvesWhoseSlopesFallAreConcaveBetweenPoints) {
  const auto touched = [](int rows) {
    return static_cast<int64_t>(64e6 * touched_share(64, 6, rows));
  };
  TimeCurve times;
  for (int rows = 1; rows <= 256; rows *= 2) times.add(rows, touched(rows));
  int64_t last = 0;
  for (int rows = 1; rows <= 128; ++rows) {
    const auto expected = static_cast<double>(touched(rows));
    EXPECT_NEAR(static_cast<double>(times.at(rows)), expected, expected * 0.02) << rows;
    EXPECT_GE(times.at(rows), last);
    last = times.at(rows);
  }
  // Neither above what the slopes around allow, nor raised where they do not fall.
  EXPECT_LE(curve({{1, 100}, {2, 200}, {4, 210}, {8, 215}}).at(3), 207);
  EXPECT_EQ(curve({{1, 100}, {2, 110}, {4, 210}, {8, 230}}).at(3), 160);
}

TEST(CostTable, CurvesNeverFall) {
  TimeCurve times = curve({{1, 500}, {2, 400}, {4, 450}, {8, 900}});
  int64_t last = 0;
  for (int size = 0; size < 40; ++size) {
    EXPECT_GE(times.at(size), last);
    last = times.at(size);
  }
  EXPECT_EQ(times.at(4), 500);
}

TEST(CostTable, DraftsCostTheCatchUpAndThePassesBehindIt) {
  const CostTable times = some_times();
  EXPECT_EQ(times.draft_ns(0, {}), 0);
  EXPECT_EQ(times.draft_ns(0, {.num_draft_tokens = 0, .catch_up_rows = 64}), 730);
  EXPECT_EQ(times.draft_ns(0, {.num_draft_tokens = 1, .catch_up_rows = 1, .num_spans = 1}), 100);
  EXPECT_EQ(times.draft_ns(0, {.num_draft_tokens = 4, .catch_up_rows = 64, .num_spans = 16}),
            730 + 3 * 230);
  EXPECT_EQ(times.draft_ns(1, {.num_draft_tokens = 5, .catch_up_rows = 0, .num_spans = 3}), 7);
}

TEST(CostTable, TheDevicesArrayHoldsOneTimeARow) {
  const std::vector<int32_t> row_ns = some_times().row_ns(8, 3, 64);
  ASSERT_EQ(row_ns.size(), 65u);
  EXPECT_EQ(row_ns[0], 0);
  EXPECT_EQ(row_ns[1], 1000);
  EXPECT_EQ(row_ns[9], 1900);
  EXPECT_EQ(row_ns[64], 12900);
  CostTable slow;
  slow.target = curve({{1, int64_t{1} << 35}});
  EXPECT_EQ(slow.row_ns(1, 1, 1)[1], INT32_MAX);
}

CostTable verify_times() {
  CostTable times = some_times();
  times.verify = {
      {.drafts = 0, .idle = curve({{1, 1000}, {8, 1600}}), .full = curve({{1, 1000}, {8, 1600}})},
      {.drafts = 1, .idle = curve({{1, 1100}, {8, 2000}}), .full = curve({{1, 1200}, {8, 2400}})},
      {.drafts = 3, .idle = curve({{1, 1100}, {8, 2600}}), .full = curve({{1, 1600}, {8, 4000}})}};
  times.context = {{0, 40000}, {4, 60000}};
  times.known_tokens = 256;
  return times;
}

// Kernels that work in tiles of 128 rows: one row more costs nearly as much as 128. Times between
// those that were measured jump where the curve of rows does.
TEST(CostTable, BetweenMeasuredStepsTimesGoAsThoseOfRowsDo) {
  CostTable times;
  times.target = curve({{64, 4000}, {128, 5000}, {144, 7000}, {256, 7500}});
  const TimeCurve plain = curve({{64, 5000}, {128, 6000}, {256, 10000}});
  const TimeCurve drafting = curve({{64, 6000}, {128, 9000}});
  times.verify = {{.drafts = 0, .idle = plain, .full = plain},
                  {.drafts = 1, .idle = drafting, .full = drafting}};
  EXPECT_EQ(times.step_ns(64, 64, 64), 6000);
  EXPECT_EQ(times.step_ns(72, 72, 72), 6000 + 3000 * 4 / 5) << "144 rows";
  EXPECT_EQ(times.step_ns(128, 0, 0), 6000);
  EXPECT_EQ(times.step_ns(144, 0, 0), 6000 + 4000 * 4 / 5);
  EXPECT_EQ(times.step_ns(128, 16, 16), 6000 + 3000 * 4 / 5) << "a part of the sequences drafts";
  EXPECT_EQ(times.step_ns(128, 128, 128), 9000);
  for (int64_t seqs = 1; seqs < 300; ++seqs) {
    EXPECT_LE(times.step_ns(static_cast<int>(seqs), seqs, seqs),
              times.step_ns(static_cast<int>(seqs) + 1, seqs + 1, seqs + 1));
  }
}

TEST(CostTable, RoomForDraftsIsNeverFreeBetweenMeasuredSizes) {
  CostTable times;
  times.target = curve({{128, 6400}, {144, 7600}, {256, 9100}, {288, 10000}, {512, 13200}});
  const TimeCurve plain = curve({{128, 6500}, {256, 9300}});
  times.verify = {{.drafts = 0, .idle = plain, .full = plain},
                  {.drafts = 1,
                   .idle = curve({{128, 6700}, {256, 9700}}),
                   .full = curve({{128, 9300}, {256, 14000}})}};
  for (int seqs = 128; seqs <= 256; seqs += 8) {
    int64_t last = times.step_ns(seqs, 0, 0);
    for (int64_t granted = 1; granted <= seqs; granted += 7) {
      EXPECT_GE(times.step_ns(seqs, granted, 0), last) << seqs << " + " << granted;
      EXPECT_GE(times.step_ns(seqs, granted, granted), times.step_ns(seqs, granted, 0));
      last = times.step_ns(seqs, granted, 0);
    }
  }
}

// Times as long as may be stay within 64 bits.
TEST(CostTable, LongTimesDoNotOverflow) {
  constexpr int64_t kLong = int64_t{1} << 40;
  CostTable times;
  times.target = curve({{1, 1}, {512, kLong}});
  times.verify = {{.drafts = 0, .idle = curve({{1, 1}}), .full = curve({{1, 1}})},
                  {.drafts = 1, .idle = curve({{1, kLong}}), .full = curve({{1, kLong}})}};
  EXPECT_NEAR(static_cast<double>(times.step_ns(256, 128, 128)), kLong / 2.0, kLong / 100.0);
}

TEST(CostTable, StepsGoByTheRoomForDraftsAndByTheDrafts) {
  const CostTable times = verify_times();
  EXPECT_EQ(times.step_ns(8, 0, 0), 1600);
  EXPECT_EQ(times.step_ns(8, 8, 8), 2400);
  EXPECT_EQ(times.step_ns(8, 8, 0), 2000);
  EXPECT_EQ(times.step_ns(8, 8, 4), 2200);
  EXPECT_EQ(times.step_ns(8, 4, 4), 2000);
  EXPECT_EQ(times.step_ns(8, 16, 16), 3200);
  EXPECT_EQ(times.step_ns(8, 24, 12), 3300);
  EXPECT_EQ(times.step_ns(8, 100, 100), 4000);
  EXPECT_EQ(times.step_ns(1, 3, 3), 1600);
  EXPECT_EQ(times.step_ns(0, 0, 0), 0);
  EXPECT_EQ(some_times().step_ns(8, 40, 0), 1700);
  EXPECT_EQ(some_times().step_ns(8, 56, 56), 12900);
}

TEST(CostTable, ContextCostsWhatIsBeyondThatOfTheOtherTimes) {
  const CostTable times = verify_times();
  EXPECT_EQ(times.context_ns(8, 0, 8 * 256), 0);
  EXPECT_EQ(times.context_ns(8, 0, 100), 0);
  EXPECT_EQ(times.context_ns(8, 0, 8 * 256 + 1000), 40000);
  EXPECT_EQ(times.context_ns(8, 2, 8 * 256 + 1000), 50000);
  EXPECT_EQ(times.context_ns(8, 16, 8 * 256 + 1000), 60000);
  EXPECT_EQ(some_times().context_ns(8, 2, 1 << 20), 0) << "not measured";
}

// At 64 tokens a plain step takes 40 % of its time at 256, one with four drafts half of it, and a
// drafter's later passes a quarter.
CostTable short_times() {
  CostTable times = verify_times();
  constexpr int64_t kOne = TimeShares::kOne;
  times.short_tokens = 64;
  times.short_steps.resize(2);
  times.short_steps[0].shares.add(1, kOne * 2 / 5);
  times.short_steps[1].drafts = 4;
  times.short_steps[1].shares.add(1, kOne / 2);
  times.drafters[0].short_pass.add(1, kOne / 4);
  return times;
}

TEST(CostTable, StepsOfShortContextsTakeTheirShare) {
  const CostTable times = short_times();
  EXPECT_NEAR(times.context_ns(2, 0, 2 * 64, 1000), -600, 1);
  EXPECT_NEAR(times.context_ns(2, 0, 2, 1000), -600, 1) << "fewer tokens count as many as measured";
  EXPECT_NEAR(times.context_ns(2, 4, 2 * 64, 1000), -500, 1);
  EXPECT_NEAR(times.context_ns(2, 2, 2 * 64, 1000), -550, 1);
  EXPECT_NEAR(times.context_ns(2, 0, 2 * 160, 1000), -300, 1) << "half way";
  EXPECT_EQ(times.context_ns(2, 0, 2 * 256, 1000), 0);
  EXPECT_EQ(times.context_ns(2, 0, 2 * 64), 0) << "of a step whose time is not told";
  EXPECT_EQ(verify_times().context_ns(2, 0, 2 * 64, 1000), 0) << "not measured";
  const DraftUse use{.num_draft_tokens = 3, .catch_up_rows = 0, .num_spans = 1};
  const int64_t pass = times.drafters[0].pass.at(1);
  const int64_t whole = times.draft_ns(0, use);
  EXPECT_EQ(times.draft_ns(0, use, 256), whole);
  EXPECT_NEAR(times.draft_ns(0, use, 64), whole - 2 * pass * 3 / 4, 3);
  EXPECT_NE(times.text().find("25 % of that with 64 tokens known"), std::string::npos);
}

// A second row that seems to cost nothing by the rows alone.
TEST(CostTable, RowsOfOneSequenceGoAsStepsWithRoomForThem) {
  CostTable times;
  times.target = curve({{1, 8000}, {2, 8000}, {4, 11200}, {9, 23400}});
  const TimeCurve idle = curve({{1, 7000}});
  times.verify = {{.drafts = 0, .idle = idle, .full = idle},
                  {.drafts = 1, .idle = idle, .full = curve({{1, 8700}})},
                  {.drafts = 2, .idle = idle, .full = curve({{1, 9400}})},
                  {.drafts = 8, .idle = idle, .full = curve({{1, 23200}})}};
  const std::vector<int32_t> row_ns = times.row_ns(1, 8, 9);
  EXPECT_EQ(row_ns[1], 7000);
  EXPECT_EQ(row_ns[2], 8700);
  EXPECT_EQ(row_ns[3], 9400);
  EXPECT_GT(row_ns[4], 9400);
  EXPECT_EQ(row_ns[9], 23200);
}

TEST(CostTable, TheDevicesArrayGoesFromNoDraftsToAllAsRowsDo) {
  const std::vector<int32_t> row_ns = verify_times().row_ns(8, 3, 40);
  EXPECT_EQ(row_ns[8], 2600);
  EXPECT_EQ(row_ns[20], 3300);
  EXPECT_EQ(row_ns[32], 4000);
  // Half of the drafts touch more than half of what all touch.
  CostTable mixture;
  const TimeCurve rows = curve({{1, 1000}, {2, 1900}, {4, 3400}, {8, 5000}, {16, 5600}});
  mixture.target = rows;
  const TimeCurve all = curve({{1, 3400}, {2, 5000}, {4, 5600}});
  const TimeCurve none = curve({{1, 1000}, {2, 1900}, {4, 3400}});
  mixture.verify = {{.drafts = 0, .idle = none, .full = none},
                    {.drafts = 3, .idle = none, .full = all}};
  for (const int live : {8, 12, 16}) {
    EXPECT_EQ(mixture.row_ns(4, 3, 16)[static_cast<size_t>(live)], rows.at(live)) << live;
    EXPECT_EQ(mixture.step_ns(4, 12, live - 4), rows.at(live)) << live;
  }
}

TEST(CostTable, TheTextHasALineForEachPoint) {
  const std::string text = some_times().text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 8);
  EXPECT_NE(text.find("eagle3 catch-up"), std::string::npos);
  EXPECT_NE(text.find("ngram proposal"), std::string::npos);
  EXPECT_NE(text.find("0.012 ms"), std::string::npos) << text;
}

}  // namespace
}  // namespace foretoken
