#include "serve/answer/served_drafters.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

const std::vector<DrafterInfo> kDrafters = {
    {.name = "ngram", .num_speculative_tokens = 8, .looks_up = true, .leads = true},
    {.name = "eagle3", .num_speculative_tokens = 5},
    {.name = "suffix", .num_speculative_tokens = 16, .looks_up = true}};

void expect_served(const std::string& method, const std::string& served, int num_tokens) {
  const ServedDrafters found = served_drafters(kDrafters, method);
  EXPECT_EQ(found.method, served) << method;
  EXPECT_EQ(found.num_speculative_tokens, num_tokens) << method;
}

TEST(ServedDrafters, TheDefaultMayBeAList) {
  expect_served("", "ngram+eagle3", 8);
  expect_served("mtp", "ngram+eagle3", 8);
}

TEST(ServedDrafters, OfAListTheMostDraftsCount) {
  expect_served("eagle3", "eagle3", 5);
  expect_served("suffix+eagle3", "suffix+eagle3", 16);
}

TEST(ServedDrafters, AnEngineMayHaveNone) {
  EXPECT_EQ(served_drafters({}, "").method, "");
  EXPECT_EQ(served_drafters({}, "ngram").num_speculative_tokens, 0);
}

}  // namespace
}  // namespace foretoken
