#include "engine/rank_engine.h"

#include <thread>

#include "engine/dialled_engine.h"
#include "engine/engine_impl.h"
#include "group/local_link.h"
#include "support/held_queue.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

class RankEngine : public DialledRanks {
 protected:
  static EngineConfig config_of_two() {
    EngineConfig two = config(2);
    two.cpu_threads = 1;
    two.parallel.tensor_parallel_size = 2;
    return two;
  }
};

// What a launcher does with ranks of its own.
TEST_F(RankEngine, RanksWithLinksOfTheirOwn) {
  auto links = group::make_local_links(2);
  std::thread other([&] {
    EngineConfig own = config_of_two();
    own.device_ordinal = 1;
    const Status status = run_rank(own, {}, std::move(links[1]));
    EXPECT_TRUE(status.ok()) << status.message();
  });
  std::unique_ptr<Engine> engine;
  const Status status = make_rank_engine(config_of_two(), std::move(links[0]), nullptr, &engine);
  ASSERT_TRUE(status.ok()) << status.message();
  const auto outputs = engine->generate({request(3, 5, 9), request(40, 20, 12)});
  EXPECT_EQ(outputs[0].token_ids, expected(3, 5, 9));
  EXPECT_EQ(outputs[1].token_ids, expected(40, 20, 12));
  engine.reset();
  other.join();
}

// Rank 1 is another model: the start ends on both with one reason.
TEST_F(RankEngine, ARankThatCannotStartEndsTheGroup) {
  auto links = group::make_local_links(2);
  std::thread other([&] {
    EngineConfig own = config_of_two();
    own.model = "/nowhere/at/all";
    EXPECT_FALSE(run_rank(own, {}, std::move(links[1])).ok());
  });
  std::unique_ptr<Engine> engine;
  const Status status = make_rank_engine(config_of_two(), std::move(links[0]), nullptr, &engine);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("/nowhere/at/all"), std::string::npos) << status.message();
  other.join();
}

// A rank that dies while requests run: they end with its reason, and so do later ones.
TEST_F(RankEngine, ARankThatFailsEndsTheRequests) {
  auto links = group::make_local_links(2);
  std::unique_ptr<Engine> engine;
  std::atomic<test::HeldQueue*> queue{nullptr};
  std::thread other([&] {
    const TestHooks hooks{.wrap_queue = test::wrap_into(&queue)};
    Status status = run_rank(config_of_two(), hooks, std::move(links[1]));
    EXPECT_FALSE(status.ok());
  });
  group::RankLink* const plans = links[0][1].get();
  const Status status = make_rank_engine(config_of_two(), std::move(links[0]), nullptr, &engine);
  ASSERT_TRUE(status.ok()) << status.message();
  const auto gate = queue.load()->hold();
  auto pending = engine->generate_async(request(0, 20, 400));
  plans->abort({StatusCode::kInternal, "rank 1 fell over"});
  gate->open();
  const auto outputs = pending.get();
  EXPECT_FALSE(outputs[0].status.ok());
  EXPECT_NE(outputs[0].status.message().find("rank 1 fell over"), std::string::npos)
      << outputs[0].status.message();
  EXPECT_FALSE(engine->generate({request(0, 3, 3)})[0].status.ok());
  engine.reset();
  other.join();
}

TEST_F(RankEngine, WhatRanksCannotDoIsSaid) {
  if (const std::string missing = missing_devices(9); !missing.empty()) GTEST_SKIP() << missing;
  EngineConfig cut = config_of_two();
  cut.parallel.tensor_parallel_size = 1;
  cut.parallel.pipeline_parallel_size = 9;
  std::unique_ptr<Engine> engine;
  const Status status = make_engine(cut, &engine);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("--pipeline-parallel-size 9"), std::string::npos);
}

class IdleRanks : public DialledEngine {};

TEST_F(IdleRanks, PartsOfStepsAreMeasuredOnOneRank) {
  EngineConfig two = config(0);
  two.parallel.tensor_parallel_size = 2;
  const auto idle = EngineImpl::create(two, {}, EngineImpl::Start::kIdle);
  EXPECT_EQ(idle.status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace foretoken
