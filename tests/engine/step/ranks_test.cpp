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
  EXPECT_TRUE(ranks.open(*device, {.most_row_bytes = 1024}).ok());
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
      ASSERT_TRUE(ranks.open(*device, {.most_row_bytes = 1024}).ok());
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

// Two stages of two ranks each: the first two have the last stage.
TEST(Ranks, StagesOfRanksThatShareLayers) {
  auto links = group::make_local_links(4);
  std::vector<std::thread> threads;
  for (auto& own : links) {
    threads.emplace_back([&own] {
      Ranks ranks(std::move(own), {.tp = 2, .pp = 2});
      const auto device = open_device(DeviceType::kCpu, 0, 1).value();
      ASSERT_TRUE(ranks.open(*device, {.most_row_bytes = 1024}).ok());
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
