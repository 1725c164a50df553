#include "engine/step/ranks.h"

#include <gtest/gtest.h>

#include <thread>

#include "group/local_link.h"
#include "kernels/devices/open_device.h"

namespace foretoken {
namespace {

TEST(Ranks, OneRankMeetsNobody) {
  Ranks ranks;
  const auto device = open_device(DeviceType::kCpu, 0, 1).value();
  EXPECT_TRUE(ranks.is_alone() && ranks.is_first());
  EXPECT_TRUE(ranks.open(*device, {.max_row_bytes = 1024}).ok());
  EXPECT_EQ(ranks.comm(), nullptr);
  EXPECT_EQ(ranks.least(7, "a number").value(), 7);
  EXPECT_EQ(ranks.of_first("text", "a text").value(), "text");
  ranks.abort({StatusCode::kInternal, "nothing to end"});
}

TEST(Ranks, AgreeOnTheLeastAndOnWhatRankZeroSays) {
  auto links = group::make_local_links(3);
  std::vector<std::thread> threads;
  for (auto& own : links) {
    threads.emplace_back([&own] {
      Ranks ranks(std::move(own));
      const auto device = open_device(DeviceType::kCpu, 0, 1).value();
      ASSERT_TRUE(ranks.open(*device, {.max_row_bytes = 1024}).ok());
      EXPECT_NE(ranks.comm(), nullptr);
      EXPECT_EQ(ranks.sharding().size, 3);
      EXPECT_EQ(ranks.sharding().rank, ranks.rank());
      EXPECT_EQ(ranks.least(10 - ranks.rank(), "a number").value(), 8);
      EXPECT_EQ(ranks.of_first(ranks.rank() + 5, "a number").value(), 5);
      EXPECT_EQ(ranks.of_first(std::string(3 + ranks.rank(), 'x'), "a text").value(), "xxx");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Ranks, EachLaneOfRowsHasCommunicatorsOfItsOwn) {
  auto links = group::make_local_links(2);
  std::vector<std::thread> threads;
  for (auto& own : links) {
    threads.emplace_back([&own] {
      Ranks ranks({std::move(own), {}}, {.tp = 2}, true, 2);
      const auto device = open_device(DeviceType::kCpu, 0, 1).value();
      ASSERT_TRUE(ranks.open(*device, {.max_row_bytes = 1024, .in_lanes = true}).ok());
      const Sharding first = ranks.sharding(), second = ranks.sharding(1);
      EXPECT_EQ(first.comm, ranks.comm());
      EXPECT_NE(second.comm, nullptr);
      EXPECT_NE(first.comm, second.comm);
      EXPECT_EQ(second.context.comm, second.comm);
      EXPECT_EQ(second.rank, first.rank);
      EXPECT_EQ(second.experts.size, 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Two stages of two ranks each: the first two have the last stage.
TEST(Ranks, StagesOfRanksThatShareLayers) {
  auto links = group::make_local_links(4);
  std::vector<std::thread> threads;
  for (auto& own : links) {
    threads.emplace_back([&own] {
      Ranks ranks({std::move(own), {}}, {.tp = 2, .pp = 2});
      const auto device = open_device(DeviceType::kCpu, 0, 1).value();
      ASSERT_TRUE(ranks.open(*device, {.max_row_bytes = 1024}).ok());
      EXPECT_EQ(ranks.sharding().rank, ranks.rank() % 2);
      EXPECT_EQ(ranks.sharding().size, 2);
      EXPECT_NE(ranks.sharding().comm, nullptr);
      EXPECT_EQ(ranks.stages().is_last(), ranks.rank() < 2);
      EXPECT_EQ(ranks.stages().count, 2);
      EXPECT_NE(ranks.stages().comm, nullptr);
      EXPECT_EQ(ranks.num_last_stage(), 2);
      EXPECT_EQ(ranks.least(10 - ranks.rank(), "a number").value(), 7);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Two engines of two ranks that have experts together.
TEST(Ranks, EnginesBesideOneAnother) {
  auto engines = local_links_of_engines(2, 2);
  std::vector<std::thread> threads;
  for (int engine = 0; engine < 2; ++engine) {
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, engine, rank] {
        Ranks ranks(std::move(engines[static_cast<size_t>(engine)][static_cast<size_t>(rank)]),
                    {.tp = 2}, true);
        const auto device = open_device(DeviceType::kCpu, 0, 1).value();
        ASSERT_TRUE(ranks.open(*device, {.max_row_bytes = 1024}).ok());
        EXPECT_EQ(ranks.num_engines(), 2);
        const Sharding sharding = ranks.sharding();
        EXPECT_EQ(sharding.rank, rank);
        EXPECT_EQ(sharding.size, 2);
        EXPECT_EQ(sharding.experts.rank, engine * 2 + rank);
        EXPECT_EQ(sharding.experts.size, 4);
        EXPECT_EQ(sharding.experts.num_engines, 2);
        EXPECT_NE(sharding.experts.comm, nullptr);
        EXPECT_EQ(ranks.least(10 - sharding.experts.rank, "a number").value(), 7);
        EXPECT_EQ(ranks.most(sharding.experts.rank, "a number").value(), 3);
        EXPECT_EQ(ranks.of_first(sharding.experts.rank + 5, "a number").value(), 5);
        EXPECT_EQ(ranks.of_first(std::string(3 + sharding.experts.rank, 'x'), "text").value(),
                  "xxx");
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
}

// Ranks side by side share the positions of sequences.
TEST(Ranks, NeighboursShareAContext) {
  auto links = local_rank_links(4);
  std::vector<std::thread> threads;
  for (auto& own : links) {
    threads.emplace_back([&own] {
      Ranks ranks(std::move(own), {.tp = 4}, false, 2);
      const auto device = open_device(DeviceType::kCpu, 0, 1).value();
      ASSERT_TRUE(ranks.open(*device, {.max_row_bytes = 1024}).ok());
      const ContextRanks context = ranks.sharding().context;
      EXPECT_EQ(context.comm, ranks.comm());
      EXPECT_EQ(context.size, 2);
      EXPECT_EQ(context.rank, ranks.rank() % 2);
      EXPECT_EQ(context.first, ranks.rank() / 2 * 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// From a rank of one engine to the other rank of the other one.
TEST(Ranks, AnEndReachesTheOtherEngines) {
  auto engines = local_links_of_engines(2, 2);
  std::vector<std::unique_ptr<Ranks>> all(4);
  std::vector<std::unique_ptr<Device>> devices(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      all[i] = std::make_unique<Ranks>(std::move(engines[i / 2][i % 2]), group::RankLayout{.tp = 2},
                                       true);
      devices[i] = open_device(DeviceType::kCpu, 0, 1).value();
      ASSERT_TRUE(all[i]->open(*devices[i], {.max_row_bytes = 1024}).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  all[3]->abort({StatusCode::kInternal, "no more tea"});
  for (const auto& ranks : all) EXPECT_FALSE(ranks->least(1, "a number").ok());
  all.clear();
}

TEST(Ranks, AnEndReachesAll) {
  auto links = group::make_local_links(2);
  Ranks first(std::move(links[0])), second(std::move(links[1]));
  first.abort({StatusCode::kInternal, "no more tea"});
  const auto least = second.least(1, "a number");
  ASSERT_FALSE(least.ok());
  EXPECT_NE(least.status().message().find("no more tea"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
