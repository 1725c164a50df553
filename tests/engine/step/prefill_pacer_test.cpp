#include "engine/step/prefill_pacer.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

// Runs steps that take `rest` and `row` nanoseconds for each row, with rows up to `free` at no
// cost; the rows of a step at the end, on average.
double rows_after(PrefillPacer& pacer, int num_steps, int64_t rest, int64_t row, int free = 0) {
  double sum = 0;
  for (int i = 0; i < num_steps; ++i) {
    StepPlan plan;
    plan.paced_limit = plan.num_paced_rows = pacer.rows().beside;
    pacer.planned(plan);
    pacer.observe(plan, rest + row * std::max(plan.num_paced_rows - free, 0));
    if (i >= num_steps - 2) sum += plan.num_paced_rows / 2.0;
  }
  return sum;
}

TEST(PrefillPacer, RowsTakeAsLongAsTheRest) {
  PrefillPacer pacer(512);
  EXPECT_NEAR(rows_after(pacer, 120, 45'000'000, 450'000), 100, 3);
  // The prefix grows, and rows become dearer.
  EXPECT_NEAR(rows_after(pacer, 120, 45'000'000, 4'500'000), 10, 1);
  EXPECT_NEAR(rows_after(pacer, 120, 45'000'000, 150'000), 300, 8);
}

TEST(PrefillPacer, StaysWithinItsBounds) {
  PrefillPacer pacer(100);
  EXPECT_EQ(rows_after(pacer, 60, 1'000'000, 0), 75);
  EXPECT_EQ(rows_after(pacer, 60, 0, 1'000'000), 6);
  EXPECT_NEAR(rows_after(pacer, 60, 1'000'000, 25'000, 10), 40, 10);
}

TEST(PrefillPacer, OtherPromptsAndPlainStepsTeachNothing) {
  PrefillPacer pacer(512);
  const int rows = pacer.rows().beside;
  for (int i = 0; i < 50; ++i) {
    StepPlan plan;
    if (i % 2 == 0) plan.paced_limit = plan.num_paced_rows = pacer.rows().beside;
    plan.num_other_prompt_rows = i % 2 == 0 ? 5 : 0;
    pacer.observe(plan, i * 1000);
  }
  EXPECT_EQ(pacer.rows().beside, rows);
}

TEST(PrefillPacer, LoneStepsEndWithinHalfASecond) {
  PrefillPacer pacer(512);
  EXPECT_EQ(pacer.rows().alone, 512);
  const auto after = [&](int64_t row_ns) {
    for (int i = 0; i < 10; ++i) {
      StepPlan plan;
      plan.num_lone_rows = pacer.rows().alone;
      pacer.observe(plan, plan.num_lone_rows * row_ns);
    }
    return pacer.rows().alone;
  };
  EXPECT_EQ(after(100'000), 512);
  EXPECT_EQ(after(5'000'000), 100);
  EXPECT_EQ(after(50'000'000), 64);
  EXPECT_EQ(after(1'000'000), 500);
}

}  // namespace
}  // namespace foretoken
