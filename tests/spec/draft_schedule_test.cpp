#include "spec/draft_schedule.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace foretoken {
namespace {

TEST(DraftSchedule, SchedulesAreChecked) {
  EXPECT_TRUE(check_schedule({{1, 4, 5}, {5, 8, 3}, {16, 64, 0}}).ok());
  constexpr int kMax = std::numeric_limits<int>::max();
  EXPECT_TRUE(check_schedule({{1, kMax, 5}}).ok());
  for (const std::vector<DraftSchedule>& bad :
       std::vector<std::vector<DraftSchedule>>{{},
                                               {{2, 4, 1}},
                                               {{1, 4, 1}, {4, 8, 1}},
                                               {{1, 0, 1}},
                                               {{1, 4, -1}},
                                               {{1, 4, 65}},
                                               {{1, kMax, 1}, {3, 4, 1}}}) {
    const Status status = check_schedule(bad);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("num_speculative_tokens_per_batch_size"), std::string::npos);
  }
}

TEST(DraftSchedule, GapsAndTheTailKeepTheNumberBeforeThem) {
  const std::vector<DraftSchedule> schedule = {{1, 4, 5}, {9, 12, 2}};
  EXPECT_EQ(scheduled_draft_tokens(schedule, 0, 16), 5) << "an empty step counts as one sequence";
  EXPECT_EQ(scheduled_draft_tokens(schedule, 4, 16), 5);
  EXPECT_EQ(scheduled_draft_tokens(schedule, 8, 16), 5);
  EXPECT_EQ(scheduled_draft_tokens(schedule, 9, 16), 2);
  EXPECT_EQ(scheduled_draft_tokens(schedule, 400, 16), 2);
  EXPECT_EQ(scheduled_draft_tokens(schedule, 1, 3), 3) << "never more than the drafter makes";
  EXPECT_EQ(scheduled_draft_tokens({}, 7, 4), 4);
}

}  // namespace
}  // namespace foretoken
