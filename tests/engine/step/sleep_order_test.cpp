#include "engine/step/sleep_order.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "group/local_link.h"

namespace foretoken {
namespace {

constexpr auto kLane = group::Lane::kControl;

// What rank 0 hears, which is what all hear.
SleepOutcome gathered(const SleepOutcome& first, const SleepOutcome& second) {
  auto links = group::make_local_links(2);
  std::thread other([&] {
    const auto all = outcome_of_all(group::link_of(links[1], kLane), second);
    EXPECT_TRUE(all.ok());
  });
  SleepOutcome all = outcome_of_all(group::link_of(links[0], kLane), first).value();
  other.join();
  return all;
}

TEST(SleepOrder, SumsAndWhatIsAwayAnywhere) {
  const SleepOutcome all =
      gathered({.bytes = 3, .weights_are_away = true}, {.bytes = 4, .blocks_are_away = true});
  EXPECT_TRUE(all.status.ok());
  EXPECT_EQ(all.bytes, 7);
  EXPECT_TRUE(all.weights_are_away);
  EXPECT_FALSE(all.weights_are_lost);
  EXPECT_TRUE(all.blocks_are_away);
}

TEST(SleepOrder, AFailureIsToldWithItsRank) {
  const SleepOutcome all = gathered(
      {}, {.status = {StatusCode::kResourceExhausted, "the GPU is " + std::string(900, 'f')}});
  EXPECT_EQ(all.status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(all.status.message().find("rank 1: the GPU is fff"), 0u) << all.status.message();
}

TEST(SleepOrder, AGroupThatHasEndedIsAnError) {
  auto links = group::make_local_links(2);
  group::link_of(links[1], kLane).abort({StatusCode::kInternal, "rank 1 fell over"});
  const auto all = outcome_of_all(group::link_of(links[0], kLane), {});
  EXPECT_NE(all.status().message().find("rank 1 fell over"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
