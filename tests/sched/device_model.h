#pragma once
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "sched/step_plan.h"

namespace foretoken {

// What a device would do with the scheduler's plans, as plain data: block tables, true lengths and,
// for every KV position, a hash of the tokens up to it. A hash that is read and does not fit tells
// of a block that was never announced, was given away too early, or was written by two.
class DeviceModel {
 public:
  struct Config {
    int block_size = 4;
    unsigned seed = 0;
    int end_odds = 40;  // one in so many samples ends its sequence
  };
  struct Result {
    std::vector<int32_t> ids;
    bool ended = false;
  };
  // A span as the host knew it when it was planned.
  struct Work {
    Span span;
    int slot = 0;
    std::vector<int32_t> known;
  };
  struct Step {
    std::vector<Work> work;
    std::vector<BlockAssignment> blocks;
  };

  explicit DeviceModel(const Config& config) : config_(config), random_(config.seed) {}

  static Step record(const StepPlan& plan);

  // One result for each span. `problem` receives the first inconsistency.
  std::vector<Result> run(const Step& step, std::string& problem);

 private:
  struct Slot {
    std::vector<int32_t> tokens;
    int computed = 0;
    bool ended = false;
    std::map<int, BlockId> table;
  };

  Result run_span(const Work& work, std::string& problem);
  void sample(Slot& slot, const Work& work, Result& result, std::string& problem);
  bool write(Slot& slot, int position, uint64_t hash, std::string& problem);
  void check_context(const Slot& slot, std::string& problem) const;

  const Config config_;
  std::mt19937 random_;
  std::map<int, Slot> slots_;
  std::map<int64_t, uint64_t> kv_;  // by block * block_size + offset
};

}  // namespace foretoken
