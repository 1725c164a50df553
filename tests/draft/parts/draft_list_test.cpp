#include "draft/parts/draft_list.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

constexpr DrafterTraits kLooksUp = {.looks_up = true};

TEST(DraftList, NamesAndBack) {
  EXPECT_EQ(names_of_list("ngram"), std::vector<std::string>{"ngram"});
  EXPECT_EQ(names_of_list("ngram+eagle3"), (std::vector<std::string>{"ngram", "eagle3"}));
  EXPECT_EQ(names_of_list("ngram+"), (std::vector<std::string>{"ngram", ""}));
  EXPECT_EQ(list_name({"ngram", "eagle3"}), "ngram+eagle3");
}

TEST(DraftList, LookupsBeforeOneOther) {
  EXPECT_TRUE(check_list("x", {{"ngram", kLooksUp}}).ok());
  EXPECT_TRUE(check_list("x", {{"eagle"}}).ok());
  EXPECT_TRUE(check_list("x", {{"ngram", kLooksUp}, {"eagle"}}).ok());
  EXPECT_TRUE(check_list("x", {{"suffix", kLooksUp}, {"ngram", kLooksUp}}).ok());
}

TEST(DraftList, ImpossibleOnes) {
  EXPECT_EQ(
      check_list("x", {{"eagle"}, {"ngram", kLooksUp}}).message(),
      "x: 'eagle' always drafts, so that 'ngram' behind it never would; put it last, or leave "
      "one of the two out");
  EXPECT_EQ(check_list("x", {{"ngram", kLooksUp}, {"ngram", kLooksUp}}).message(),
            "x: the list names 'ngram' twice; leave one out");
  EXPECT_FALSE(check_list("x", {{"eagle"}, {"mtp"}}).ok()) << "two heads";
  EXPECT_FALSE(check_list("x", {}).ok());
}

}  // namespace
}  // namespace foretoken
