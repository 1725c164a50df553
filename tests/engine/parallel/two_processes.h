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

}  // namespace foretoken
