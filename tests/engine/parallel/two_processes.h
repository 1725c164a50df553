#pragma once
#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/dialled_engine.h"
#include "engine/parallel/process_ranks.h"
#include "group/wire/address.h"

namespace foretoken {

// Two engines side by side of two threads that believe themselves to be processes of torchrun:
// tests/e2e/engine_hosts_suite.py has real ones.
class TwoProcesses : public DialledEngine {
 protected:
  static group::Environment place(int rank, int port) {
    std::map<std::string, std::string> variables = {{"RANK", std::to_string(rank)},
                                                    {"WORLD_SIZE", "2"},
                                                    {"MASTER_ADDR", "127.0.0.1"},
                                                    {"MASTER_PORT", std::to_string(port)}};
    return [variables](const char* name) -> const char* {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    };
  }
  static EngineConfig two_engines() {
    EngineConfig two = config(3);
    two.parallel.data_parallel_size = 2;
    two.cpu_threads = 1;
    return two;
  }

  void SetUp() override {
    if (engine_test_device() != "cpu") GTEST_SKIP() << "the second process wants a second GPU";
    port_ = group::port_of(group::listen_tcp("127.0.0.1", 0).value());
    other_ = std::thread([this] { ran_ = run_process_rank(behind_, place(1, port_)); });
  }
  // The front end must have left.
  void TearDown() override {
    if (other_.joinable()) other_.join();
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
  }

  EngineConfig behind_ = two_engines();  // of the second one
  int port_ = 0;
  Status ran_;  // the second one's end

 private:
  std::thread other_;
};

// Hosts as threads, each with engines that it names (host_flags.h) and none of a launcher's.
class NamedHosts : public DialledEngine {
 protected:
  static group::Environment no_variables() {
    return [](const char*) -> const char* { return nullptr; };
  }
  // The configuration of the host that has `count` engines from `first` on.
  EngineConfig host(int first, int count, bool headless) const {
    EngineConfig own = config(3);
    own.cpu_threads = 1;
    own.parallel.data_parallel_size = num_engines_;
    own.parallel.data_parallel_start_rank = first;
    own.parallel.data_parallel_size_local = count;
    own.parallel.headless = headless;
    own.parallel.master_addr = "127.0.0.1";
    own.parallel.master_port = port_;
    return own;
  }
  // Runs a host without a server.
  void run_behind(int first, int count) {
    hosts_.emplace_back([this, own = host(first, count, true)] {
      const Status ran = run_process_rank(own, no_variables());
      EXPECT_TRUE(ran.ok()) << ran.message();
    });
  }

  void SetUp() override {
    if (engine_test_device() != "cpu") GTEST_SKIP() << "each engine wants a GPU";
    port_ = group::port_of(group::listen_tcp("127.0.0.1", 0).value());
  }
  // The front end must have left.
  void TearDown() override {
    for (std::thread& host : hosts_) host.join();
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
  }

  int num_engines_ = 3;
  int port_ = 0;

 private:
  std::vector<std::thread> hosts_;
};

}  // namespace foretoken
