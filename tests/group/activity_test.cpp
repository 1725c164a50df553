#include "group/activity.h"

#include <gtest/gtest.h>

namespace foretoken::group {
namespace {

TEST(Activity, KeepsWhatWasNotedLast) {
  Activity activity;
  EXPECT_EQ(activity.last(), "");
  activity.note("all_gather of step 11");
  activity.note("send of step 2");
  EXPECT_EQ(activity.last(), "send of step 2");
  activity.note("dispatch_rows");
  EXPECT_EQ(activity.last(), "dispatch_rows (plans up to step 2)");
  Activity without;
  without.note(std::string(500, 'x'));
  EXPECT_EQ(without.last(), std::string(Activity::kMaxChars, 'x'));
}

}  // namespace
}  // namespace foretoken::group
