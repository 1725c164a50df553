#include "group/local_link.h"

#include <gtest/gtest.h>

#include "group/link_contract.h"

namespace foretoken::group {
namespace {

std::vector<RankLink*> of_lane(const std::vector<LaneLinks>& links, Lane lane) {
  std::vector<RankLink*> found;
  for (const LaneLinks& rank : links) found.push_back(rank[static_cast<size_t>(lane)].get());
  return found;
}

TEST(LocalLink, ExchangesOnEachLane) {
  for (const int size : {1, 2, 5}) {
    const auto links = make_local_links(size);
    for (const Lane lane : {Lane::kCollectives, Lane::kPlans, Lane::kControl, Lane::kStages}) {
      on_all_ranks(of_lane(links, lane), [](RankLink& link) { expect_exchanges(link); });
    }
  }
}

TEST(LocalLink, GroupsExchangeAmongThemselves) {
  const auto links = make_local_links(6);
  on_all_ranks(of_lane(links, Lane::kCollectives),
               [](RankLink& link) { expect_group_exchanges(link); });
}

TEST(LocalLink, WhatIsPostedGoesWithoutFurtherCalls) {
  const auto links = make_local_links(3);
  on_all_ranks(of_lane(links, Lane::kCollectives), [](RankLink& link) { expect_flushes(link); });
}

TEST(LocalLink, SomeRanksKeepToThemselves) {
  const auto links = make_local_links(4);
  on_all_ranks(of_lane(links, Lane::kStages),
               [](RankLink& link) { expect_narrow_exchanges(link); });
}

TEST(LocalLink, AnAbortReachesThoseWhoKeepToThemselves) {
  const auto links = make_local_links(4);
  on_all_ranks(of_lane(links, Lane::kStages), [&](RankLink& link) {
    const int rank = link.rank();
    link.narrow(std::vector<int>{rank % 2, rank % 2 + 2});
    if (rank == 0) return link.abort({StatusCode::kInternal, "out of tea"});
    std::vector<std::byte> data(8);
    const Status status = link.receive(1 - link.rank(), data, "what never comes");
    EXPECT_NE(status.message().find("out of tea"), std::string::npos) << status.message();
  });
}

TEST(LocalLink, ManyCollectivesInTurn) {
  const auto links = make_local_links(3);
  on_all_ranks(of_lane(links, Lane::kCollectives), [](RankLink& link) {
    for (int i = 0; i < 2000; ++i) {
      const int mine = link.rank() * 10000 + i;
      std::array<int, 3> all{};
      ASSERT_TRUE(link.all_gather(std::as_bytes(std::span(&mine, 1)),
                                  std::as_writable_bytes(std::span(all)), "numbers")
                      .ok());
      for (int rank = 0; rank < 3; ++rank)
        ASSERT_EQ(all[static_cast<size_t>(rank)], rank * 10000 + i);
    }
  });
}

TEST(LocalLink, AbortReachesAll) {
  const auto links = make_local_links(4);
  expect_abort_reaches_all(of_lane(links, Lane::kPlans));
}

// A rank that fails on one lane ends those that wait on another.
TEST(LocalLink, AbortReachesOtherLanes) {
  const auto links = make_local_links(2);
  std::thread waiting([&] {
    const int mine = 1;
    std::array<int, 2> all{};
    const Status status = links[1][0]->all_gather(
        std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), "a gather");
    EXPECT_NE(status.message().find("out of tea"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("rank 1"), std::string::npos) << status.message();
  });
  links[0][2]->abort({StatusCode::kInternal, "out of tea"});
  waiting.join();
}

}  // namespace
}  // namespace foretoken::group
