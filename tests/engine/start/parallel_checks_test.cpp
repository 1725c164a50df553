#include "engine/start/parallel_checks.h"

#include <gtest/gtest.h>

#include <map>

namespace foretoken {
namespace {

using Variables = std::map<std::string, std::string>;

group::Environment environment(const Variables& variables) {
  return [variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

const Variables kMpirun = {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}};

void expect_error(const EngineConfig& config, const std::string& part,
                  const Variables& variables = {}) {
  const Status status = check_parallel(config, environment(variables));
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  EXPECT_FALSE(status.ok());
}

TEST(ParallelChecks, NamesWhatCannotBe) {
  EngineConfig config;
  EXPECT_TRUE(check_parallel(config, environment({})).ok());
  config.parallel.tensor_parallel_size = 0;
  expect_error(config, "--tensor-parallel-size");
  config.parallel.tensor_parallel_size = 2;
  EXPECT_TRUE(check_parallel(config, environment({})).ok());
  config.parallel.distributed_executor_backend = "ray";
  expect_error(config, "--distributed-executor-backend 'ray' is unknown; use uni or mp");
  config.parallel.distributed_executor_backend = "uni";
  config.parallel.communicator = "carrier pigeon";
  expect_error(config, "--communicator");
  config.parallel.communicator = "";
  config.parallel.nnodes = 2;
  expect_error(config, "uni keeps all ranks in one process");
  config.parallel.node_rank = 2;
  expect_error(config, "--node-rank 2 is not one of --nnodes 2");
  config.parallel = {};
  config.parallel.master_port = 70000;
  expect_error(config, "--master-port 70000");
}

TEST(ParallelChecks, DataParallelEnginesAreOnOneHostInOneProcess) {
  EngineConfig config;
  config.parallel.data_parallel_size = 2;
  EXPECT_TRUE(check_parallel(config, environment({})).ok());
  expect_error(config, "under mpirun", kMpirun);
  EXPECT_TRUE(check_parallel(config, environment({{"FORETOKEN_RANK", "1"}})).ok());
  expect_error(config, "put a balancer before them", {{"LWS_GROUP_SIZE", "2"}});
  config.parallel.nnodes = 2;
  expect_error(config, "put a balancer before them");
  config.parallel.enable_expert_parallel = true;
  EXPECT_TRUE(check_parallel(config, environment({})).ok());
  for (const char* device : {"cpu", "cuda"}) {
    config.device = device;
    config.parallel.pipeline_parallel_size = 2;
    EXPECT_TRUE(check_parallel(config, environment({})).ok()) << device;
  }
}

TEST(ParallelChecks, EnginesWithExpertsInCommonMeetOverProcesses) {
  ParallelConfig parallel;
  parallel.data_parallel_size = 4;
  parallel.nnodes = 2;
  EXPECT_EQ(layout_of_group(parallel).dp, 1);
  EXPECT_FALSE(joins_experts_of_processes(parallel, environment({})));
  parallel.enable_expert_parallel = true;
  EXPECT_EQ(layout_of_group(parallel).dp, 4);
  EXPECT_EQ(num_hosts(parallel, environment({})), 2);
  EXPECT_EQ(num_hosts(parallel, environment({{"LWS_GROUP_SIZE", "8"}})), 2);
  EXPECT_TRUE(joins_experts_of_processes(parallel, environment({})));
  parallel.nnodes = 1;
  EXPECT_EQ(num_hosts(parallel, environment({{"LWS_GROUP_SIZE", "3"}})), 3);
  EXPECT_FALSE(joins_experts_of_processes(parallel, environment({})));
  // Each engine is one rank, a thread of this process.
  parallel.distributed_executor_backend = "mp";
  EXPECT_FALSE(joins_experts_of_processes(parallel, environment({})));
  parallel.tensor_parallel_size = 2;
  EXPECT_TRUE(joins_experts_of_processes(parallel, environment({})));
}

TEST(ParallelChecks, RanksOnGpusAreThreadsOrProcessesWithoutMpi) {
  EngineConfig config;
  config.device = "cuda";
  config.parallel.tensor_parallel_size = 2;
  EXPECT_TRUE(check_parallel(config, environment({})).ok());
  config.parallel.distributed_executor_backend = "mp";
  EXPECT_TRUE(check_parallel(config, environment({})).ok());
  config.parallel.communicator = "mpi";
  expect_error(config, "--communicator mpi");
}

TEST(ParallelChecks, RanksAreProcessesWhereTheyHaveTo) {
  ParallelConfig parallel;
  parallel.tensor_parallel_size = 2;
  EXPECT_FALSE(ranks_are_processes(parallel, environment({})));
  EXPECT_TRUE(ranks_are_processes(parallel, environment(kMpirun)));
  EXPECT_TRUE(ranks_are_processes(parallel, environment({{"FORETOKEN_RANK", "1"}})));
  EXPECT_FALSE(ranks_are_processes(parallel, environment({{"LWS_GROUP_SIZE", "1"}})));
  EXPECT_TRUE(ranks_are_processes(parallel, environment({{"LWS_GROUP_SIZE", "2"}})));
  parallel.distributed_executor_backend = "mp";
  EXPECT_TRUE(ranks_are_processes(parallel, environment({})));
  parallel.tensor_parallel_size = 1;
  EXPECT_FALSE(ranks_are_processes(parallel, environment({})));
  EXPECT_EQ(layout_of_engine(parallel).num_ranks(), 1);
  EXPECT_EQ(process_environment("FORETOKEN_NO_SUCH_VARIABLE"), nullptr);
}

}  // namespace
}  // namespace foretoken
