#include "engine/start/host_flags.h"

#include <gtest/gtest.h>

#include <limits>

namespace foretoken {
namespace {

ParallelConfig engines(int count) {
  ParallelConfig parallel;
  parallel.data_parallel_size = count;
  return parallel;
}

ParallelConfig named(int count, int first, int local) {
  ParallelConfig parallel = engines(count);
  parallel.data_parallel_start_rank = first;
  parallel.data_parallel_size_local = local;
  return parallel;
}

void expect_no_hosts(const ParallelConfig& parallel, const std::string& part) {
  const Result<ParallelConfig> hosts = with_hosts(parallel);
  ASSERT_FALSE(hosts.ok()) << part;
  EXPECT_NE(hosts.status().message().find(part), std::string::npos) << hosts.status().message();
}

void expect_named(const ParallelConfig& parallel, int first, int local) {
  const Result<ParallelConfig> hosts = with_hosts(parallel);
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  EXPECT_TRUE(names_own_engines(hosts.value()));
  EXPECT_FALSE(serves_apart(hosts.value()));
  EXPECT_EQ(hosts.value().data_parallel_start_rank, first);
  EXPECT_EQ(hosts.value().data_parallel_size_local, local);
  EXPECT_EQ(hosts.value().nnodes, 1);
}

// All engines are here, and nothing is said of other hosts.
void expect_alone(const ParallelConfig& parallel) {
  const Result<ParallelConfig> hosts = with_hosts(parallel);
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  EXPECT_FALSE(names_own_engines(hosts.value()));
  EXPECT_FALSE(serves_apart(hosts.value()));
  EXPECT_EQ(hosts.value().nnodes, 1);
}

// A server of `count` engines from `first` on, which needs nobody.
void expect_apart(const ParallelConfig& parallel, int first, int count) {
  const Result<ParallelConfig> hosts = with_hosts(parallel);
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  EXPECT_TRUE(serves_apart(hosts.value()));
  EXPECT_EQ(hosts.value().data_parallel_start_rank, first);
  EXPECT_EQ(hosts.value().data_parallel_size, count);
  EXPECT_EQ(hosts.value().nnodes, 1);
}

TEST(HostFlags, WhatIsNotSaidStays) {
  expect_alone(engines(6));
  ParallelConfig parallel = engines(6);
  parallel.nnodes = 3;
  parallel.node_rank = 2;
  EXPECT_EQ(with_hosts(parallel).value().nnodes, 3);
  EXPECT_EQ(with_hosts(parallel).value().node_rank, 2);
  parallel = engines(4);
  parallel.data_parallel_size_local = 4;
  expect_alone(parallel);
  parallel.data_parallel_start_rank = 0;
  parallel.data_parallel_hybrid_lb = true;
  expect_alone(parallel);
  parallel = engines(1);
  parallel.data_parallel_rank = 0;
  expect_alone(parallel);
}

TEST(HostFlags, HostsNameTheirEngines) {
  ParallelConfig first = named(4, -1, 1);
  expect_named(first, 0, 1);
  ParallelConfig second = named(4, 1, 3);
  second.headless = true;
  expect_named(second, 1, 3);
  // Equally many, in the order of hosts.
  ParallelConfig third = named(6, -1, 2);
  third.nnodes = 3;
  third.node_rank = 2;
  expect_named(third, 4, 2);
}

TEST(HostFlags, AServerMayHaveNoEngine) {
  expect_named(named(4, -1, 0), 0, 0);
  expect_named(named(1, -1, 0), 0, 0);
  ParallelConfig behind = named(4, -1, 4);
  behind.headless = true;
  expect_named(behind, 0, 4);
}

TEST(HostFlags, AStartRankIsANodeRank) {
  ParallelConfig parallel = engines(4);
  parallel.nnodes = 2;
  parallel.data_parallel_start_rank = 2;
  EXPECT_EQ(with_hosts(parallel).value().node_rank, 1);
  parallel.data_parallel_start_rank = 1;
  expect_no_hosts(parallel, "--data-parallel-start-rank 1 is the first engine of no host");
  parallel.data_parallel_start_rank = 4;
  expect_no_hosts(parallel, "is the first engine of no host");
}

TEST(HostFlags, EveryHostMayHaveAServer) {
  ParallelConfig parallel = named(4, 2, 2);
  parallel.data_parallel_hybrid_lb = true;
  expect_apart(parallel, 2, 2);
  parallel.enable_expert_parallel = true;
  expect_named(parallel, 2, 2);
  EXPECT_EQ(with_hosts(parallel).value().data_parallel_size, 4);
  // As vLLM reads it.
  parallel = named(4, 2, 2);
  expect_apart(parallel, 2, 2);
  parallel = engines(4);
  parallel.data_parallel_hybrid_lb = true;
  parallel.nnodes = 2;
  parallel.node_rank = 1;
  expect_apart(parallel, 2, 2);
}

TEST(HostFlags, EveryEngineMayHaveAServer) {
  ParallelConfig parallel = engines(4);
  parallel.data_parallel_rank = 3;
  expect_apart(parallel, 3, 1);
  parallel.data_parallel_size_local = 1;
  expect_apart(parallel, 3, 1);
  parallel.enable_expert_parallel = true;
  expect_named(parallel, 3, 1);
  EXPECT_TRUE(with_hosts(parallel).value().data_parallel_external_lb);
  parallel = engines(2);
  parallel.data_parallel_external_lb = true;
  parallel.nnodes = 2;
  parallel.node_rank = 1;
  expect_apart(parallel, 1, 1);
}

TEST(HostFlags, EnginesThatThereAreNotAreNamed) {
  expect_no_hosts(named(4, 2, 3), "--data-parallel-start-rank 2 and --data-parallel-size-local 3");
  expect_no_hosts(named(4, -1, 8), "has the engines 0 to 3");
  expect_no_hosts(named(4, 1, 0), "name engines that there are not");
  expect_no_hosts(named(4, 1, std::numeric_limits<int>::max()), "name engines that there are not");
  ParallelConfig parallel = engines(4);
  parallel.data_parallel_rank = 4;
  expect_no_hosts(parallel, "--data-parallel-rank 4 is no engine of --data-parallel-size 4");
}

TEST(HostFlags, WhatContradictsItselfIsNamed) {
  ParallelConfig parallel = named(4, -1, 2);
  parallel.nnodes = 4;
  expect_no_hosts(parallel, "--nnodes 4 and --data-parallel-size-local 2 contradict");
  parallel.nnodes = 2;
  parallel.data_parallel_start_rank = 0;
  parallel.node_rank = 1;
  expect_no_hosts(parallel, "--node-rank 1 and --data-parallel-start-rank 0 contradict");
  parallel = named(4, -1, 4);
  parallel.nnodes = 2;
  expect_no_hosts(parallel, "--nnodes 2 and --data-parallel-size-local 4 contradict");
  parallel = named(4, 1, -1);
  parallel.data_parallel_rank = 2;
  expect_no_hosts(parallel, "--data-parallel-rank 2 and --data-parallel-start-rank 1 contradict");
  parallel = named(4, 2, 2);
  parallel.data_parallel_hybrid_lb = parallel.data_parallel_external_lb = true;
  expect_no_hosts(parallel, "leave one of them out");
  parallel = named(4, -1, 2);
  parallel.data_parallel_rank = 1;
  expect_no_hosts(parallel, "--data-parallel-size-local is 2");
  parallel = named(4, 2, 2);
  parallel.data_parallel_hybrid_lb = parallel.headless = true;
  expect_no_hosts(parallel, "every host has one");
}

TEST(HostFlags, WhatIsMissingIsAskedFor) {
  ParallelConfig parallel = engines(4);
  parallel.headless = true;
  expect_no_hosts(parallel, "--headless is for hosts without a server");
  parallel.nnodes = 2;
  expect_no_hosts(parallel, "--headless is for hosts without a server");
  parallel.node_rank = 1;
  EXPECT_TRUE(with_hosts(parallel).ok());
  parallel = engines(4);
  parallel.data_parallel_hybrid_lb = true;
  expect_no_hosts(parallel, "--data-parallel-size-local");
  parallel.nnodes = 3;
  expect_no_hosts(parallel, "--data-parallel-size 4 cannot be divided among --nnodes 3");
  parallel = engines(4);
  parallel.data_parallel_external_lb = true;
  expect_no_hosts(parallel, "--data-parallel-rank");
  expect_no_hosts(named(4, 2, -1), "say how many engines this host has");
}

}  // namespace
}  // namespace foretoken
