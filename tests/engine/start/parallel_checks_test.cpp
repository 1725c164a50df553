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
  config.parallel.distributed_executor_backend = "slurm";
  expect_error(config, "--distributed-executor-backend 'slurm' is unknown; use uni, mp or ray");
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

TEST(ParallelChecks, DataParallelEnginesMayBeOfSeveralHostsAndProcesses) {
  EngineConfig config;
  config.parallel.data_parallel_size = 2;
  EXPECT_TRUE(check_parallel(config, environment({})).ok());
  EXPECT_TRUE(check_parallel(config, environment(kMpirun)).ok());
  EXPECT_TRUE(check_parallel(config, environment({{"FORETOKEN_RANK", "1"}})).ok());
  EXPECT_TRUE(check_parallel(config, environment({{"LWS_GROUP_SIZE", "2"}})).ok());
  config.parallel.nnodes = 2;
  EXPECT_TRUE(check_parallel(config, environment({})).ok());
  config.parallel.enable_expert_parallel = true;
  EXPECT_TRUE(check_parallel(config, environment({})).ok());
  for (const char* device : {"cpu", "cuda"}) {
    config.device = device;
    config.parallel.pipeline_parallel_size = 2;
    EXPECT_TRUE(check_parallel(config, environment({})).ok()) << device;
  }
}

TEST(ParallelChecks, EnginesOfSeveralProcessesHaveOneFrontEnd) {
  ParallelConfig parallel;
  parallel.data_parallel_size = 4;
  EXPECT_FALSE(has_one_front_end(parallel, environment({})));
  EXPECT_EQ(layout_of_group(parallel, environment({})).dp, 1);
  // A child of one of several engines on this host has no other engines beside it.
  EXPECT_FALSE(has_one_front_end(parallel, environment({{"FORETOKEN_RANK", "1"}})));
  EXPECT_TRUE(has_one_front_end(parallel, environment(kMpirun)));
  EXPECT_TRUE(meets_other_processes(parallel, environment(kMpirun)));
  parallel.nnodes = 2;
  EXPECT_TRUE(has_one_front_end(parallel, environment({})));
  EXPECT_TRUE(has_one_front_end(parallel, environment({{"FORETOKEN_RANK", "1"}})));
  // Each host serves its own engines unless vLLM's names say otherwise.
  parallel.enable_expert_parallel = true;
  EXPECT_FALSE(has_one_front_end(parallel, environment({})));
  parallel.headless = true;
  EXPECT_TRUE(has_one_front_end(parallel, environment({})));
}

// Of launchers they heed only that they are children of this program's own.
TEST(ParallelChecks, NamedEnginesHaveOneFrontEndOrServersOfTheirOwn) {
  const Variables set = {{"LWS_GROUP_SIZE", "2"},
                         {"LWS_WORKER_INDEX", "1"},
                         {"SLURM_PROCID", "1"},
                         {"SLURM_STEP_NUM_TASKS", "2"},
                         {"FORETOKEN_RANK", "5"}};
  ParallelConfig parallel;
  parallel.data_parallel_size = 4;
  parallel.data_parallel_start_rank = 1;
  parallel.data_parallel_size_local = 3;
  EXPECT_TRUE(has_one_front_end(parallel, environment(set)));
  EXPECT_TRUE(meets_other_processes(parallel, environment(set)));
  EXPECT_FALSE(ranks_are_processes(parallel, environment(set)));
  EXPECT_EQ(num_hosts(parallel, environment({})), 2);
  EXPECT_EQ(layout_of_group(parallel, environment({})).dp, 4);
  const group::Environment heeded = heeded_environment(parallel, environment(set));
  EXPECT_EQ(heeded("SLURM_PROCID"), nullptr);
  EXPECT_STREQ(heeded("FORETOKEN_RANK"), "5");
  parallel.tensor_parallel_size = 2;
  EXPECT_TRUE(ranks_are_processes(parallel, environment({})));
  parallel.data_parallel_hybrid_lb = parallel.enable_expert_parallel = true;
  EXPECT_FALSE(has_one_front_end(parallel, environment(set)));
  EXPECT_TRUE(meets_other_processes(parallel, environment(set)));
  // Apart.
  parallel.enable_expert_parallel = false;
  parallel.data_parallel_size = 2;
  parallel.data_parallel_size_local = -1;
  const Variables launched = {{"LWS_GROUP_SIZE", "2"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}};
  EXPECT_FALSE(has_one_front_end(parallel, environment(launched)));
  EXPECT_FALSE(meets_other_processes(parallel, environment(launched)));
  EXPECT_FALSE(ranks_are_processes(parallel, environment(launched)));
  EXPECT_EQ(num_hosts(parallel, environment(launched)), 1);
}

// A server without engines needs one elsewhere.
TEST(ParallelChecks, OneEngineMayHaveItsServerElsewhere) {
  ParallelConfig parallel;
  parallel.data_parallel_start_rank = 0;
  parallel.data_parallel_size_local = 0;
  EXPECT_TRUE(has_one_front_end(parallel, environment({})));
  EXPECT_TRUE(meets_other_processes(parallel, environment({})));
}

TEST(ParallelChecks, EnginesMeetOverProcesses) {
  ParallelConfig parallel;
  const auto layout = [&] { return layout_of_group(parallel, environment({})); };
  parallel.data_parallel_size = 4;
  EXPECT_FALSE(meets_other_processes(parallel, environment({})));
  parallel.nnodes = 2;
  EXPECT_EQ(layout().dp, 4);
  EXPECT_TRUE(meets_other_processes(parallel, environment({})));
  parallel.enable_expert_parallel = true;
  EXPECT_EQ(layout().dp, 4);
  EXPECT_EQ(num_hosts(parallel, environment({})), 2);
  EXPECT_EQ(num_hosts(parallel, environment({{"LWS_GROUP_SIZE", "8"}})), 2);
  EXPECT_TRUE(meets_other_processes(parallel, environment({})));
  parallel.nnodes = 1;
  EXPECT_EQ(num_hosts(parallel, environment({{"LWS_GROUP_SIZE", "3"}})), 3);
  EXPECT_FALSE(meets_other_processes(parallel, environment({})));
  // Each engine is one rank, a thread of this process.
  parallel.distributed_executor_backend = "mp";
  EXPECT_FALSE(meets_other_processes(parallel, environment({})));
  parallel.tensor_parallel_size = 2;
  EXPECT_TRUE(meets_other_processes(parallel, environment({})));
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
