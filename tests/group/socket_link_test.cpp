#include "group/socket_link.h"

#include <gtest/gtest.h>

#include <array>
#include <semaphore>

#include "group/wake_bell.h"
#include "link_contract.h"
#include "socket_pairs.h"

namespace foretoken::group {
namespace {

struct Links {
  explicit Links(int size) {
    auto sockets = connected(size);
    for (int rank = 0; rank < size; ++rank) {
      shared.push_back(share(rank, size));
      links.push_back(std::make_unique<SocketLink>(
          shared.back(), std::move(sockets[static_cast<std::size_t>(rank)])));
      all.push_back(links.back().get());
    }
  }
  std::vector<std::shared_ptr<LinkShared>> shared;
  std::vector<std::unique_ptr<SocketLink>> links;
  std::vector<RankLink*> all;
};

TEST(SocketLink, ExchangesBytes) {
  for (const int size : {1, 2, 5}) {
    Links group(size);
    on_all_ranks(group.all, expect_exchanges);
  }
}

TEST(SocketLink, GroupsExchangeAmongThemselves) {
  Links group(6);
  on_all_ranks(group.all, expect_group_exchanges);
}

TEST(SocketLink, SomeRanksKeepToThemselves) {
  Links group(4);
  on_all_ranks(group.all, expect_narrow_exchanges);
}

TEST(SocketLink, WhatIsPostedGoesWithoutFurtherCalls) {
  Links group(3);
  on_all_ranks(group.all, expect_flushes);
}

TEST(SocketLink, NarrowedAgainItStillNamesItsRanks) {
  Links group(4);
  group.shared[1]->layout = group.shared[3]->layout = {.tp = 2, .pp = 2};
  on_all_ranks({group.all[1], group.all[2], group.all[3]},
               [](RankLink& link) { link.narrow(std::array{1, 2, 3}); });
  on_all_ranks({group.all[1], group.all[3]}, [](RankLink& link) {
    link.narrow(std::array{0, 2});
    expect_exchanges(link);
  });
  group.links[3].reset();
  std::vector<std::byte> all(16);
  const Status lost = group.links[1]->all_gather(pattern(0, 8), all, "a gather");
  EXPECT_NE(lost.message().find("rank 1 (tp 1, pp 0) lost rank 3 (tp 1, pp 1)"), std::string::npos)
      << lost.message();
}

TEST(SocketLink, NewsAreWhatWasSentAndTheEnd) {
  Links group(2);
  NewsWatch watch(group.links[1]->news_descriptors());
  std::counting_semaphore<> woken(0);
  watch.set_waker([&] { woken.release(); });
  ASSERT_TRUE(group.links[0]->send(1, pattern(0, 4), "news").ok());
  EXPECT_FALSE(woken.try_acquire_for(std::chrono::milliseconds(20)));
  watch.arm();
  EXPECT_TRUE(woken.try_acquire_for(std::chrono::minutes(1)));
  EXPECT_FALSE(woken.try_acquire_for(std::chrono::milliseconds(20)));
  std::vector<std::byte> got(4);
  ASSERT_TRUE(group.links[1]->receive(0, got, "news").ok());
  watch.arm();
  EXPECT_FALSE(woken.try_acquire_for(std::chrono::milliseconds(20)));
  group.links[1]->abort({StatusCode::kInternal, "the kettle boiled over"});
  EXPECT_TRUE(woken.try_acquire_for(std::chrono::minutes(1)));
}

TEST(SocketLink, AllSendAtOnceMoreThanBuffersHold) {
  Links group(4);
  on_all_ranks(group.all, [](RankLink& link) {
    std::vector<std::byte> all(4u << 22);
    ASSERT_TRUE(link.all_gather(pattern(link.rank(), 1u << 22), all, "a large gather").ok());
    EXPECT_EQ(all[3u << 22], pattern(3, 1)[0]);
  });
}

TEST(SocketLink, ABrokenConnectionNamesBothRanksAndTheCollective) {
  Links group(3);
  group.links[2].reset();
  on_all_ranks({group.all[0], group.all[1]}, [](RankLink& link) {
    std::vector<std::byte> all(24);
    const Status lost = link.all_gather(pattern(0, 8), all, "all_gather of step 12");
    const std::string start = "rank " + std::to_string(link.rank()) + " (tp " +
                              std::to_string(link.rank()) +
                              ") lost rank 2 (tp 2) in all_gather of step 12";
    EXPECT_EQ(lost.message().find(start), 0u) << lost.message();
    // And so ends every later call.
    EXPECT_EQ(link.broadcast(0, all, "a broadcast").message(), lost.message());
  });
}

TEST(SocketLink, AnEndWakesAWaitingCall) {
  Links group(2);
  std::thread other([&] {
    std::vector<std::byte> data(8);
    EXPECT_EQ(group.links[1]->receive(0, data, "nothing").message(), "enough");
  });
  group.shared[1]->end.end(aborted("enough"));
  other.join();
  EXPECT_EQ(group.shared[1]->activity.last(), "nothing");
}

}  // namespace
}  // namespace foretoken::group
