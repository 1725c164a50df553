#include "engine/parallel/process_ranks.h"

#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <thread>

#include "engine/dialled_engine.h"
#include "group/wire/address.h"

namespace foretoken {
namespace {

// Threads that believe themselves to be processes of torchrun; tests/e2e/ranks_suite.py has real
// ones.
class ProcessRanks : public DialledEngine {
 protected:
  static group::Environment place(int rank, int size, int port) {
    std::map<std::string, std::string> variables = {{"RANK", std::to_string(rank)},
                                                    {"WORLD_SIZE", std::to_string(size)},
                                                    {"MASTER_ADDR", "127.0.0.1"},
                                                    {"MASTER_PORT", std::to_string(port)}};
    return [variables](const char* name) -> const char* {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    };
  }
  static int free_port() { return group::port_of(group::listen_tcp("127.0.0.1", 0).value()); }
  void TearDown() override {
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
  }
};

TEST_F(ProcessRanks, GenerateTheSameAsOneRank) {
  if (engine_test_device() != "cpu")
    GTEST_SKIP() << "rank 1 wants a second GPU: tests/e2e/gpu_ranks_suite.py";
  EngineConfig two = config(3);
  two.parallel.tensor_parallel_size = 2;
  const int port = free_port();
  std::thread other([&] {
    const Status ran = run_process_rank(two, place(1, 2, port));
    EXPECT_TRUE(ran.ok()) << ran.message();
  });
  {
    auto engine = make_process_engine(two, place(0, 2, port), nullptr);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    EXPECT_EQ(engine.value()->info().ranks_per_engine, 2);
    const auto outputs = engine.value()->generate({request(0, 20, 12), request(7, 30, 12)});
    ASSERT_EQ(outputs.size(), 2u);
    EXPECT_EQ(outputs[0].token_ids, expected(0, 20, 12));
    EXPECT_EQ(outputs[1].token_ids, expected(7, 30, 12));
  }
  other.join();
}

TEST_F(ProcessRanks, SleepAndWakeUpTogether) {
  if (engine_test_device() != "cpu")
    GTEST_SKIP() << "rank 1 wants a second GPU: tests/e2e/gpu_ranks_suite.py";
  for (const bool stages : {false, true}) {
    EngineConfig two = config(3);
    two.enable_sleep_mode = true;
    (stages ? two.parallel.pipeline_parallel_size : two.parallel.tensor_parallel_size) = 2;
    const int port = free_port();
    std::thread other([&] {
      const Status ran = run_process_rank(two, place(1, 2, port));
      EXPECT_TRUE(ran.ok()) << ran.message();
    });
    auto engine = make_process_engine(two, place(0, 2, port), nullptr);
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    for (const int level : {1, 2, 1}) {
      if (!engine.ok()) break;
      EXPECT_TRUE(engine.value()->sleep(level).ok());
      EXPECT_TRUE(engine.value()->wake_up().ok());
      const auto outputs = engine.value()->generate({request(0, 20, 12)});
      EXPECT_EQ(outputs[0].token_ids, expected(0, 20, 12));
    }
    if (engine.ok()) {
      // Ends asleep.
      EXPECT_TRUE(engine.value()->sleep(2).ok());
      std::move(engine).value().reset();
    }
    other.join();
  }
}

TEST_F(ProcessRanks, ARankOfAnotherConfigurationEndsBoth) {
  EngineConfig two = config(0);
  two.parallel.tensor_parallel_size = 2;
  const int port = free_port();
  const std::string difference = "has --max-num-seqs";
  std::thread other([&] {
    EngineConfig changed = two;
    changed.max_num_seqs = 3;
    EXPECT_NE(run_process_rank(changed, place(1, 2, port)).message().find(difference),
              std::string::npos);
  });
  const auto engine = make_process_engine(two, place(0, 2, port), nullptr);
  EXPECT_NE(engine.status().message().find(difference), std::string::npos);
  other.join();
}

// The rank of a process without requests; -1 of one that takes them.
int other_rank(const ParallelConfig& parallel, const group::Environment& environment) {
  return rank_without_requests(parallel, environment).value().value_or(-1);
}

TEST_F(ProcessRanks, TheFirstRanksOfEnginesThatJoinExpertsAreNoOthersRanks) {
  ParallelConfig parallel;
  parallel.tensor_parallel_size = parallel.data_parallel_size = 2;
  parallel.enable_expert_parallel = true;
  const auto none = [](const char*) -> const char* { return nullptr; };
  parallel.distributed_executor_backend = "mp";
  EXPECT_EQ(other_rank(parallel, none), -1);
  parallel.nnodes = 2;
  parallel.node_rank = 1;
  parallel.master_addr = "127.0.0.1";
  EXPECT_EQ(other_rank(parallel, none), -1);
  const auto child = [](const char* name) -> const char* {
    if (std::string_view(name) == group::kChildRankVariable) return "3";
    return std::string_view(name) == group::kChildMasterVariable ? "127.0.0.1:1" : nullptr;
  };
  EXPECT_EQ(other_rank(parallel, child), 3);
}

TEST_F(ProcessRanks, WhoTakesRequestsIsNotToldByTheRank) {
  ParallelConfig parallel;
  parallel.data_parallel_size = 4;
  parallel.master_addr = "127.0.0.1";
  const auto none = [](const char*) -> const char* { return nullptr; };
  const auto named = [&](int first, int count) {
    parallel.data_parallel_start_rank = first;
    parallel.data_parallel_size_local = count;
    return other_rank(parallel, none);
  };
  EXPECT_EQ(named(0, 1), -1);
  // A server without engines, and rank 0 behind one.
  EXPECT_EQ(named(0, 0), -1);
  parallel.headless = true;
  EXPECT_EQ(named(0, 4), 0);
  EXPECT_EQ(named(1, 3), 1);
  parallel.headless = false;
  parallel.data_parallel_hybrid_lb = parallel.enable_expert_parallel = true;
  EXPECT_EQ(named(2, 2), -1);
  EXPECT_EQ(other_rank(parallel, place(1, 2, 1)), -1);
}

TEST_F(ProcessRanks, EnginesBehindAFrontEndHaveTheShareOfTheirHost) {
  EngineConfig four = config(0);
  four.parallel.data_parallel_size = 4;
  four.parallel.nnodes = 2;
  four.parallel.node_rank = 1;
  four.parallel.master_addr = "127.0.0.1";
  four.gpu_memory_utilization = 0.8;
  const auto none = [](const char*) -> const char* { return nullptr; };
  EXPECT_EQ(other_rank(four.parallel, none), 2);
  const EngineConfig second = config_of_own_engine(four, {.num_engines = 2}, 1, none);
  EXPECT_EQ(second.device_ordinal, four.device_ordinal + 1);
  EXPECT_EQ(second.parallel.nnodes * second.parallel.data_parallel_size, 1);
  // Of a launcher each process has one rank, on the device of its place.
  four.parallel = {};
  four.parallel.data_parallel_size = 4;
  EXPECT_EQ(other_rank(four.parallel, place(3, 4, 1)), 3);
  group::LaunchPlan plan;
  plan.local_rank = 1;
  plan.num_local = 2;
  plan.rank = 3;
  four.profile = "steps.json";
  const EngineConfig launched = config_of_own_engine(four, plan, 0, place(3, 4, 1));
  EXPECT_EQ(launched.device_ordinal, four.device_ordinal + 1);
  EXPECT_EQ(launched.parallel.data_parallel_size, 1);
  EXPECT_EQ(launched.profile, "steps.json.3");
}

TEST_F(ProcessRanks, AProcessKnowsItsRank) {
  ParallelConfig parallel;
  parallel.tensor_parallel_size = 2;
  EXPECT_EQ(other_rank(parallel, place(1, 2, 1)), 1);
  EXPECT_FALSE(rank_without_requests(parallel, place(1, 3, 1)).ok());
  EXPECT_EQ(other_rank(parallel, [](const char*) -> const char* { return nullptr; }), -1);
}

}  // namespace
}  // namespace foretoken
