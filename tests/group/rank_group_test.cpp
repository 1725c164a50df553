#include "group/rank_group.h"

#include <gtest/gtest.h>

#include "group_threads.h"
#include "link_contract.h"
#include "support/gate.h"

namespace foretoken::group {
namespace {

TEST(RankGroup, JoinsAndItsLinksExchangeOnEveryLane) {
  const auto joined = join_all(4);
  for (const auto& one : joined) ASSERT_TRUE(one->ok()) << one->status().message();
  for (const Lane lane : {Lane::kCollectives, Lane::kPlans, Lane::kControl}) {
    std::vector<std::unique_ptr<RankLink>> links;
    std::vector<RankLink*> all;
    for (const auto& one : joined) {
      links.push_back(one->value()->take_link(lane));
      all.push_back(links.back().get());
    }
    on_all_ranks(all, expect_exchanges);
  }
}

TEST(RankGroup, EnginesSideBySideHaveLinksOfTheirOwn) {
  const auto joined =
      join_all(4, [](int, JoinOptions& options) { options.layout = {.tp = 2, .dp = 2}; });
  for (const auto& one : joined) ASSERT_TRUE(one->ok()) << one->status().message();
  std::vector<std::unique_ptr<RankLink>> links;
  const auto take = [&](int rank, bool beside) {
    RankGroup& group = *joined[static_cast<std::size_t>(rank)]->value();
    links.push_back(beside ? group.take_link_beside(Lane::kCollectives)
                           : group.take_link(Lane::kCollectives));
    return links.back().get();
  };
  on_all_ranks({take(2, false), take(3, false)}, expect_exchanges);
  on_all_ranks({take(1, true), take(3, true)}, expect_exchanges);
  EXPECT_EQ(links.back()->rank(), 1);
}

// Of three engines of two ranks the first two are of rank 0's process.
TEST(RankGroup, AFrontEndHasLinksToTheFirstRanksOfOtherProcesses) {
  const auto joined = join_all(6, [](int rank, JoinOptions& options) {
    options.layout = {.tp = 2, .dp = 3};
    options.engines_meet = false;
    options.own_engines = 2;
    options.front = rank == 0  ? FrontSide::kFront
                    : rank < 4 ? FrontSide::kBeside
                               : FrontSide::kBehind;
  });
  for (const auto& one : joined) ASSERT_TRUE(one->ok()) << one->status().message();
  EXPECT_FALSE(joined[0]->value()->engines_meet());
  EXPECT_EQ(joined[0]->value()->take_front_link(1, FrontLane::kRequests), nullptr);
  EXPECT_EQ(joined[2]->value()->take_front_link(1, FrontLane::kRequests), nullptr);
  EXPECT_EQ(joined[5]->value()->take_front_link(2, FrontLane::kRequests), nullptr);
  for (const FrontLane lane : {FrontLane::kRequests, FrontLane::kOutputs}) {
    const auto front = joined[0]->value()->take_front_link(2, lane);
    const auto behind = joined[4]->value()->take_front_link(2, lane);
    ASSERT_TRUE(front != nullptr && behind != nullptr);
    on_all_ranks({front.get(), behind.get()}, expect_exchanges);
  }
  const auto first = joined[4]->value()->take_link(Lane::kPlans);
  const auto second = joined[5]->value()->take_link(Lane::kPlans);
  on_all_ranks({first.get(), second.get()}, expect_exchanges);
}

// The last of three is no rank: the others come to it and are all behind it.
TEST(RankGroup, AFrontEndWithoutEnginesLeadsAllRanks) {
  auto joined = join_all(3, [](int i, JoinOptions& options) {
    options.layout = {.dp = 2};
    options.engines_meet = false;
    options.front = i == 0 ? FrontSide::kFront : FrontSide::kBehind;
    options.rank = i == 0 ? bare_front(options.layout) : i - 1;
  });
  for (const auto& one : joined) ASSERT_TRUE(one->ok()) << one->status().message();
  RankGroup& front = *joined[0]->value();
  for (int engine = 0; engine < 2; ++engine) {
    RankGroup& behind = *joined[static_cast<std::size_t>(engine) + 1]->value();
    EXPECT_EQ(behind.rank(), engine);
    for (const FrontLane lane : {FrontLane::kRequests, FrontLane::kOutputs}) {
      const auto here = front.take_front_link(engine, lane);
      const auto there = behind.take_front_link(engine, lane);
      ASSERT_TRUE(here != nullptr && there != nullptr);
      EXPECT_EQ(here->rank(), 0);
      on_all_ranks({here.get(), there.get()}, expect_exchanges);
    }
  }
  joined[0].reset();
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_TRUE(test::eventually([&] { return !joined[i]->value()->ended().ok(); }));
    EXPECT_EQ(joined[i]->value()->ended().message(), "the front end has ended the group");
  }
}

TEST(RankGroup, AnAbortOfOneRankEndsAll) {
  const auto joined = join_all(3);
  std::vector<std::unique_ptr<RankLink>> links;
  std::vector<RankLink*> all;
  for (const auto& one : joined) {
    ASSERT_TRUE(one->ok());
    links.push_back(one->value()->take_link(Lane::kCollectives));
    all.push_back(links.back().get());
  }
  expect_abort_reaches_all(all);
  for (const auto& one : joined)
    EXPECT_EQ(one->value()->ended().message(), "the kettle boiled over");
}

TEST(RankGroup, TheFirstReasonOfARankAboveZeroReachesTheOthers) {
  const auto joined = join_all(3);
  for (const auto& one : joined) ASSERT_TRUE(one->ok());
  joined[2]->value()->end({StatusCode::kInternal, "rank 2 burns"});
  for (const auto& one : joined) {
    EXPECT_TRUE(test::eventually([&] { return !one->value()->ended().ok(); }));
    EXPECT_EQ(one->value()->ended().message(), "rank 2 burns");
  }
}

TEST(RankGroup, LeavingOfRank0EndsTheOthersWithoutAFault) {
  auto joined = join_all(2);
  for (const auto& one : joined) ASSERT_TRUE(one->ok());
  joined[0].reset();
  EXPECT_TRUE(test::eventually([&] { return !joined[1]->value()->ended().ok(); }));
  EXPECT_EQ(joined[1]->value()->ended().code(), StatusCode::kAborted);
  EXPECT_EQ(joined[1]->value()->ended().message(), "rank 0 has ended the group");
}

}  // namespace
}  // namespace foretoken::group
