#include "engine/parallel/prefix_router.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace foretoken {
namespace {

std::vector<int32_t> prompt(int first, int length) {
  std::vector<int32_t> ids(static_cast<size_t>(length));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

TEST(PrefixRouter, EqualEnginesTakeTurns) {
  PrefixRouter router(3, 16, 100);
  std::multiset<int> chosen;
  for (int i = 0; i < 6; ++i) chosen.insert(router.choose(prompt(1000 * i, 40), "", 1).engine);
  EXPECT_EQ(chosen, (std::multiset<int>{0, 0, 1, 1, 2, 2}));
}

TEST(PrefixRouter, SomeRequestsAreForTheFirstEnginesAlone) {
  PrefixRouter router(3, 16, 100);
  for (int i = 0; i < 6; ++i) {
    EXPECT_LT(router.choose(prompt(1000 * i, 40), "", 1, 2).engine, 2);
  }
  EXPECT_EQ(router.choose(prompt(9000, 40), "", 1).engine, 2);
}

TEST(PrefixRouter, ARequestMayBeForOneEngineAlone) {
  PrefixRouter router(3, 16, 100);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(router.choose(prompt(1000 * i, 40), "", 1, 1, 1).engine, 1);
  }
  router.close(1);
  EXPECT_EQ(router.choose(prompt(0, 40), "", 1, 1, 1).engine, 1);
}

TEST(PrefixRouter, APromptGoesWhereItsPrefixIs) {
  PrefixRouter router(4, 16, 100);
  const auto first = router.choose(prompt(0, 320), "", 1);
  router.ended(first, 1, false);
  for (int i = 0; i < 4; ++i) {
    std::vector<int32_t> longer = prompt(0, 320);
    longer.push_back(-i);
    const auto route = router.choose(longer, "", 1);
    EXPECT_EQ(route.engine, first.engine);
    EXPECT_EQ(route.uncached_tokens, 1);
  }
}

TEST(PrefixRouter, APrefixOfAnotherSaltIsAnother) {
  PrefixRouter router(2, 16, 100);
  const auto first = router.choose(prompt(0, 320), "alice", 1);
  router.ended(first, 1, false);
  const auto second = router.choose(prompt(0, 320), "bob", 1);
  EXPECT_EQ(second.uncached_tokens, 320);
  EXPECT_NE(second.engine, first.engine);
}

TEST(PrefixRouter, ABusyEngineLosesItsPrefixToAnIdleOne) {
  PrefixRouter router(2, 16, 100);
  const auto first = router.choose(prompt(0, 64), "", 1);
  // 64 tokens wait there beside a sequence; computing 64 elsewhere is less.
  EXPECT_NE(router.choose(prompt(0, 64), "", 1).engine, first.engine);
}

TEST(PrefixRouter, LoadsComeAndGo) {
  PrefixRouter router(1, 16, 100);
  const auto route = router.choose(prompt(0, 64), "", 2);
  EXPECT_EQ(router.load(0), 64 + 2 * PrefixRouter::kTokensOfSequence);
  router.prompt_done(route);
  EXPECT_EQ(router.load(0), 2 * PrefixRouter::kTokensOfSequence);
  router.ended(route, 2, true);
  EXPECT_EQ(router.load(0), 0);
}

TEST(PrefixRouter, AClosedEngineGetsNothingWhileAnotherIsOpen) {
  PrefixRouter router(2, 16, 100);
  router.close(1);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(router.choose(prompt(100 * i, 20), "", 1).engine, 0);
  router.close(0);
  router.choose(prompt(0, 20), "", 1);
}

TEST(PrefixRouter, ForgetsTheEndOfTheOldestPromptFirst) {
  PrefixRouter router(1, 16, 4);
  router.ended(router.choose(prompt(0, 64), "", 1), 1, false);
  router.ended(router.choose(prompt(5000, 32), "", 1), 1, false);
  // Two of the first prompt's four blocks are left: its first two.
  EXPECT_EQ(router.choose(prompt(0, 64), "", 1).uncached_tokens, 32);
}

TEST(PrefixRouter, LongPromptsAreBounded) {
  PrefixRouter router(2, 16, 4);
  EXPECT_EQ(router.choose(prompt(0, 100000), "", 1).uncached_tokens, 100000);
  EXPECT_EQ(router.choose({}, "", 1).uncached_tokens, 1);
}

}  // namespace
}  // namespace foretoken
