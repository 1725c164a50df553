#include "engine/start/host_flags.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

ParallelConfig engines(int count) {
  ParallelConfig parallel;
  parallel.data_parallel_size = count;
  return parallel;
}

void expect_no_hosts(const ParallelConfig& parallel, const std::string& part) {
  const Result<ParallelConfig> hosts = with_hosts(parallel);
  ASSERT_FALSE(hosts.ok()) << part;
  EXPECT_NE(hosts.status().message().find(part), std::string::npos) << hosts.status().message();
}

TEST(HostFlags, EnginesOfEachHostSayHowManyHostsThereAre) {
  ParallelConfig parallel = engines(6);
  EXPECT_EQ(with_hosts(parallel).value().nnodes, 1);
  parallel.data_parallel_size_local = 2;
  EXPECT_EQ(with_hosts(parallel).value().nnodes, 3);
  parallel.data_parallel_start_rank = 4;
  parallel.headless = true;
  const ParallelConfig last = with_hosts(parallel).value();
  EXPECT_EQ(last.node_rank, 2);
  EXPECT_EQ(with_hosts(last).value().node_rank, 2);
  EXPECT_EQ(with_hosts(last).value().nnodes, 3);
}

TEST(HostFlags, WhatContradictsItselfIsNamed) {
  ParallelConfig parallel = engines(4);
  parallel.data_parallel_size_local = 3;
  expect_no_hosts(parallel, "--data-parallel-size-local 3 does not divide --data-parallel-size 4");
  parallel.data_parallel_size_local = 8;
  expect_no_hosts(parallel, "does not divide");
  parallel.data_parallel_size_local = 2;
  parallel.nnodes = 4;
  expect_no_hosts(parallel, "--nnodes 4 and --data-parallel-size-local 2 contradict");
  parallel.nnodes = 2;
  parallel.data_parallel_start_rank = 1;
  expect_no_hosts(parallel, "--data-parallel-start-rank 1 is the first engine of no host");
  parallel.data_parallel_start_rank = 4;
  expect_no_hosts(parallel, "is the first engine of no host");
  parallel.data_parallel_start_rank = 0;
  parallel.node_rank = 1;
  expect_no_hosts(parallel, "--node-rank 1 and --data-parallel-start-rank 0 contradict");
}

TEST(HostFlags, AHostWithoutAServerIsBehindAnother) {
  ParallelConfig parallel = engines(2);
  parallel.headless = true;
  expect_no_hosts(parallel, "--headless is for hosts behind the first");
  parallel.nnodes = 2;
  parallel.node_rank = 1;
  EXPECT_TRUE(with_hosts(parallel).ok());
}

}  // namespace
}  // namespace foretoken
