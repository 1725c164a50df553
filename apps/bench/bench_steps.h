#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "apps/options/engine_options.h"
#include "base/result.h"
#include "engine/engine_impl.h"
#include "engine/start/device_limits.h"

namespace foretoken {

// The flags of benchmarks that look at single steps.
struct StepBenchOptions {
  EngineOptions engine;
  std::vector<int> batch_sizes = {1};
  int context = 128;
  double seconds = 0.2;
  double read_tb_s = 0;  // 0: of the device
  double tflops = 0;
  std::string output_json;

  // They write into this object, which must outlive the parsing.
  void add_to(CLI::App& app);
};

// An engine whose loop does not run, what its device can do, and the bench on it.
struct StepBenchRun {
  std::unique_ptr<EngineImpl> engine;
  std::unique_ptr<StepBench> bench;
  DeviceLimits limits;
};
// `rows`: of a sequence in a step, prompts too. Where no drafter is named, one that needs no model
// makes room for the drafts among them.
Result<StepBenchRun> start_step_bench(const StepBenchOptions& options,
                                      const std::vector<int>& rows = {});

// "device: 4.20 TB/s, 747 TFLOP/s".
std::string limits_text(const StepBenchRun& run);

}  // namespace foretoken
