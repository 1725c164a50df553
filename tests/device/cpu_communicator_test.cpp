#include "device/cpu/cpu_communicator.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "group/local_link.h"

namespace foretoken::cpu {
namespace {

group::RankLink& collectives(const group::LaneLinks& links) {
  return link_of(links, group::Lane::kCollectives);
}

TEST(CpuCommunicator, GathersInTheOrderOfRanksAndTakesRankZerosBytes) {
  const auto links = group::make_local_links(3);
  std::vector<std::thread> threads;
  for (const auto& own : links) {
    threads.emplace_back([&own] {
      CpuCommunicator comm(collectives(own), 1 << 20);
      EXPECT_EQ(comm.size(), 3);
      EXPECT_EQ(comm.piece_bytes(), size_t{1} << 20);
      const int mine = 10 + comm.rank();
      std::memcpy(comm.mine(), &mine, sizeof mine);
      int all[3];
      std::memcpy(all, comm.all_gather(sizeof mine, "numbers"), sizeof all);
      for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(all[rank], 10 + rank);
      int told = mine;
      comm.broadcast(std::as_writable_bytes(std::span(&told, 1)), "number");
      EXPECT_EQ(told, 10);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CpuCommunicator, CountsTheTimeOfExchanges) {
  const auto links = group::make_local_links(2);
  CpuCommunicator first(collectives(links[0]), 16);
  CpuCommunicator second(collectives(links[1]), 16);
  EXPECT_EQ(first.exchange_ns(), 0);
  std::thread other([&] { second.all_gather(4, "numbers"); });
  const auto begin = std::chrono::steady_clock::now();
  first.all_gather(4, "numbers");
  const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - begin;
  other.join();
  EXPECT_GT(first.exchange_ns(), 0);
  EXPECT_LE(first.exchange_ns(), elapsed.count());
}

TEST(CpuCommunicator, AnEndedGroupIsAnException) {
  const auto links = group::make_local_links(2);
  CpuCommunicator comm(collectives(links[0]), 16);
  comm.abort();
  EXPECT_THROW(comm.all_gather(4, "numbers"), std::runtime_error);
}

}  // namespace
}  // namespace foretoken::cpu
