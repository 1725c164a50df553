#include "group/process_group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <map>
#include <thread>

#include "group/wire/address.h"
#include "link_contract.h"

namespace foretoken::group {
namespace {

// As if mpirun had started this thread as a rank.
Result<std::unique_ptr<ProcessGroup>> start_as(int rank, int size, int port) {
  const std::map<std::string, std::string> variables = {{"RANK", std::to_string(rank)},
                                                        {"WORLD_SIZE", std::to_string(size)},
                                                        {"MASTER_ADDR", "127.0.0.1"},
                                                        {"MASTER_PORT", std::to_string(port)}};
  ProcessGroupOptions options;
  options.layout = {.tp = size};
  options.start_time = std::chrono::seconds(120);
  options.environment = [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  return ProcessGroup::start(options);
}

int free_port() { return port_of(listen_tcp("127.0.0.1", 0).value()); }

TEST(ProcessGroup, RanksOfALauncherFindEachOther) {
  const int port = free_port();
  // A rank that leaves ends the group for all.
  std::latch done(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([rank, port, &done] {
      auto processes = start_as(rank, 3, port);
      ASSERT_TRUE(processes.ok()) << processes.status().message();
      EXPECT_EQ(processes.value()->plan().rank, rank);
      const auto link = processes.value()->group().take_link(Lane::kControl);
      expect_exchanges(*link);
      done.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ProcessGroup, APortInUseIsNamed) {
  const Result<Socket> taken = listen_tcp("", 0);
  const auto processes = start_as(0, 2, port_of(taken.value()));
  ASSERT_FALSE(processes.ok());
  EXPECT_NE(processes.status().message().find("--master-port"), std::string::npos)
      << processes.status().message();
}

TEST(ProcessGroup, AFrontEndThatWaitsForEnginesCanBeCancelled) {
  const std::atomic<bool> cancelled = true;
  ProcessGroupOptions options;
  options.layout = {.dp = 2};
  options.hosts = {
      .master_addr = "127.0.0.1", .master_port = free_port(), .engines = HostEngines{}};
  options.has_one_front = true;
  options.environment = [](const char*) -> const char* { return nullptr; };
  options.cancelled = &cancelled;
  const auto processes = ProcessGroup::start(options);
  ASSERT_FALSE(processes.ok());
  EXPECT_EQ(processes.status().message(), "loading was interrupted");
}

// Processes, children, kills and stops: tests/e2e/ranks_suite.py.

}  // namespace
}  // namespace foretoken::group
