#include "group/socket_link.h"

#include <gtest/gtest.h>

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
