#include "group/launch.h"

#include <gtest/gtest.h>

#include <map>

namespace foretoken::group {
namespace {

using Variables = std::map<std::string, std::string>;

Result<LaunchPlan> plan(int ranks, const Variables& variables, const HostFlags& flags = {}) {
  return plan_launch({.tp = ranks}, flags, [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

void expect_error(const Result<LaunchPlan>& result, const std::string& part) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(result.status().message().find(part), std::string::npos) << result.status().message();
}

TEST(Launch, OneProcessStartsTheOthersOfItsHost) {
  EXPECT_EQ(plan(4, {}).value(), (LaunchPlan{.first_child = 1, .end_child = 4}));
  EXPECT_EQ(plan(1, {}).value(), (LaunchPlan{.first_child = 1, .end_child = 1}));
}

TEST(Launch, EachHostStartsItsShare) {
  const HostFlags second{.nnodes = 2, .node_rank = 1, .master_addr = "10.0.0.1"};
  EXPECT_EQ(plan(8, {}, second).value(), (LaunchPlan{.rank = 4,
                                                     .master_host = "10.0.0.1",
                                                     .master_port = kDefaultMasterPort,
                                                     .first_child = 5,
                                                     .end_child = 8}));
  expect_error(plan(3, {}, second), "cannot be divided among --nnodes 2");
  expect_error(plan(4, {}, {.nnodes = 2, .node_rank = 2, .master_addr = "x"}), "--node-rank 2");
  expect_error(plan(4, {}, {.nnodes = 2}), "--master-addr");
  expect_error(plan(4, {}, {.nnodes = 0}), "--nnodes 0");
}

TEST(Launch, AHostHasItsEnginesFirstRanksInOneProcess) {
  const RankLayout layout{.tp = 2, .dp = 4};
  const Environment none = [](const char*) -> const char* { return nullptr; };
  const HostFlags second{.nnodes = 2, .node_rank = 1, .master_addr = "a", .master_port = 1};
  EXPECT_EQ(plan_launch(layout, second, none).value(), (LaunchPlan{.rank = 4,
                                                                   .master_host = "a",
                                                                   .master_port = 1,
                                                                   .num_engines = 2,
                                                                   .first_child = 5,
                                                                   .end_child = 8}));
  EXPECT_EQ(plan_launch(layout, {}, none).value().num_engines, 4);
  const HostFlags three{.nnodes = 3, .node_rank = 1, .master_addr = "a"};
  expect_error(plan_launch(layout, three, none),
               "--data-parallel-size 4 cannot be divided among --nnodes 3");
}

// Whatever launchers and LeaderWorkerSet say of this process.
TEST(Launch, NamedEnginesSayWhereAHostStands) {
  const RankLayout layout{.tp = 2, .dp = 4};
  const Environment slurm = [](const char* name) -> const char* {
    const std::string_view asked(name);
    if (asked == "SLURM_PROCID" || asked == "LWS_WORKER_INDEX") return "1";
    return asked == "SLURM_STEP_NUM_TASKS" || asked == "LWS_GROUP_SIZE" ? "2" : nullptr;
  };
  HostFlags flags{.master_addr = "a", .engines = HostEngines{.first = 1, .count = 3}};
  EXPECT_EQ(plan_launch(layout, flags, slurm).value(),
            (LaunchPlan{.rank = 2,
                        .master_host = "a",
                        .master_port = kDefaultMasterPort,
                        .num_engines = 3,
                        .first_child = 3,
                        .end_child = 8}));
  EXPECT_FALSE(plan_launch(layout, flags, slurm).value().gathers());
  flags.engines = HostEngines{.first = 0, .count = 1};
  EXPECT_TRUE(plan_launch(layout, flags, slurm).value().gathers());
  flags.engines->behind = true;
  EXPECT_FALSE(plan_launch(layout, flags, slurm).value().gathers());
  flags.engines = HostEngines{};
  const LaunchPlan front = plan_launch(layout, flags, slurm).value();
  EXPECT_TRUE(front.gathers());
  EXPECT_EQ(front.rank, bare_front(layout));
  EXPECT_EQ(front.first_child, front.end_child);
  flags.engines = HostEngines{.first = 3, .count = 2};
  expect_error(plan_launch(layout, flags, slurm), "--data-parallel-size 4");
  flags = {.engines = HostEngines{.first = 1, .count = 3}};
  expect_error(plan_launch(layout, flags, slurm), "--data-parallel-address");
  const Environment child = [](const char* name) -> const char* {
    if (std::string_view(name) == kChildRankVariable) return "5";
    return std::string_view(name) == kChildMasterVariable ? "a:1" : nullptr;
  };
  EXPECT_EQ(plan_launch(layout, flags, child).value().local_rank, 3);
}

TEST(Launch, ALauncherHasAProcessForEachRankOfAllEngines) {
  const RankLayout layout{.tp = 2, .dp = 2};
  const auto srun = [](const char* name) -> const char* {
    const std::string_view asked(name);
    if (asked == "SLURM_PROCID") return "3";
    if (asked == "SLURM_STEP_NUM_TASKS") return "4";
    if (asked == "SLURM_LOCALID") return "1";
    if (asked == "SLURM_STEP_TASKS_PER_NODE") return "2(x2)";
    return asked == "SLURM_STEP_NODELIST" ? "node[1-2]" : nullptr;
  };
  const LaunchPlan found = plan_launch(layout, {}, srun).value();
  EXPECT_EQ(found.rank, 3);
  EXPECT_EQ(found.local_rank, 1);
  EXPECT_EQ(found.num_local, 2);
  EXPECT_EQ(found.num_engines, 1);
  EXPECT_EQ(found.master_host, "node1");
  EXPECT_TRUE(has_launcher(srun));
  expect_error(plan_launch({.tp = 2, .dp = 3}, {}, srun), "data parallel sizes ask for 6");
}

TEST(Launch, LeaderWorkerSetTellsTheHosts) {
  const Variables lws = {
      {"LWS_GROUP_SIZE", "2"}, {"LWS_WORKER_INDEX", "1"}, {"LWS_LEADER_ADDRESS", "leader.svc"}};
  const LaunchPlan found = plan(4, lws).value();
  EXPECT_EQ(found.rank, 2);
  EXPECT_EQ(found.master_host, "leader.svc");
  EXPECT_EQ(found.end_child, 4);
  // A group of one host has no other hosts.
  EXPECT_EQ(plan(2, {{"LWS_GROUP_SIZE", "1"}}).value().master_host, "");
}

TEST(Launch, MpirunOnOneHostNeedsNoAddress) {
  const LaunchPlan found = plan(4, {{"OMPI_COMM_WORLD_RANK", "3"},
                                    {"OMPI_COMM_WORLD_SIZE", "4"},
                                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}})
                               .value();
  EXPECT_EQ(found.rank, 3);
  EXPECT_EQ(found.launcher, "mpirun");
  EXPECT_EQ(found.master_host, "127.0.0.1");
  EXPECT_EQ(found.first_child, found.end_child);
}

TEST(Launch, MpirunOnSeveralHostsNeedsOne) {
  Variables variables = {{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  expect_error(plan(4, variables), "--master-addr");
  EXPECT_EQ(plan(4, variables, {.master_addr = "a"}).value().master_host, "a");
  variables["MASTER_ADDR"] = "b";
  EXPECT_EQ(plan(4, variables).value().master_host, "b");
}

TEST(Launch, TorchrunAndSrunAndMpiexecSpeakForThemselves) {
  const LaunchPlan torch =
      plan(2,
           {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "host"}, {"MASTER_PORT", "1234"}})
          .value();
  EXPECT_EQ(torch.rank, 1);
  EXPECT_EQ(torch.master_port, 1234);
  const LaunchPlan srun = plan(2, {{"SLURM_PROCID", "1"},
                                   {"SLURM_STEP_NUM_TASKS", "2"},
                                   {"SLURM_STEP_NODELIST", "node[07-08]"}})
                              .value();
  EXPECT_EQ(srun.master_host, "node07");
  EXPECT_EQ(srun.launcher, "srun");
  EXPECT_EQ(plan(2, {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}}).value().rank,
            0);
}

TEST(Launch, ABatchScriptOfSlurmIsNoRank) {
  EXPECT_EQ(plan(2, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).value().end_child, 2);
}

TEST(Launch, NumbersThatDoNotFitAreNamed) {
  const Variables eight = {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "8"}};
  expect_error(plan(2, eight), "mpirun started 8 processes");
  expect_error(plan(2, {{"RANK", "2"}, {"WORLD_SIZE", "2"}}), "RANK is 2 of 2 processes");
  expect_error(plan(2, {{"RANK", "one"}, {"WORLD_SIZE", "2"}}), "RANK is 'one'");
  expect_error(plan(2, {{"RANK", "-1"}, {"WORLD_SIZE", "2"}}), "RANK is '-1'");
  expect_error(
      plan(2, {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "x"}}),
      "MASTER_PORT is 'x'");
}

TEST(Launch, AChildKnowsItsRankAndItsMaster) {
  const Variables child = {{kChildRankVariable, "1"},
                           {kChildMasterVariable, "127.0.0.1:4000"},
                           {"OMPI_COMM_WORLD_RANK", "0"},
                           {"OMPI_COMM_WORLD_SIZE", "1"}};
  const LaunchPlan found = plan(2, child).value();
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.master_host, "127.0.0.1");
  EXPECT_EQ(found.master_port, 4000);
  expect_error(plan(1, child), "FORETOKEN_RANK=1");
  expect_error(plan(2, {{kChildRankVariable, "1"}}), "FORETOKEN_MASTER=");
}

TEST(Launch, ARankKnowsItsPlaceOnItsHost) {
  const HostFlags second{.nnodes = 2, .node_rank = 1, .master_addr = "a", .master_port = 1};
  EXPECT_EQ(plan(8, {}, second).value().local_rank, 0);
  const Variables child = {
      {kChildRankVariable, "6"}, {kChildMasterVariable, "a:1"}, {kChildDeviceVariable, "3"}};
  EXPECT_EQ(plan(8, child, second).value().local_rank, 2);
  EXPECT_EQ(plan(8, child, second).value().first_device, 3);
  EXPECT_EQ(plan(8, child).value().local_rank, 6);
  Variables torch = {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "a"}, {"LOCAL_RANK", "1"}};
  EXPECT_EQ(plan(8, torch).value().local_rank, 1);
  torch["LOCAL_RANK"] = "one";
  expect_error(plan(8, torch), "LOCAL_RANK is 'one'");
}

TEST(Launch, OneOfSeveralProcessesIsARank) {
  const auto started = [](const Variables& variables) {
    return started_as_rank([&](const char* name) -> const char* {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  EXPECT_FALSE(started({}));
  EXPECT_FALSE(started({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
  EXPECT_TRUE(started({{"RANK", "0"}, {"WORLD_SIZE", "2"}}));
  EXPECT_TRUE(started({{kChildRankVariable, "1"}}));
}

TEST(Launch, SlurmListsBeginWithTheirFirstHost) {
  EXPECT_EQ(first_host("node07"), "node07");
  EXPECT_EQ(first_host("a,b"), "a");
  EXPECT_EQ(first_host("node[03-05,9],x1"), "node03");
  EXPECT_EQ(first_host("node[3,5]"), "node3");
  EXPECT_EQ(first_host("x1,node[3,5]"), "x1");
}

}  // namespace
}  // namespace foretoken::group
