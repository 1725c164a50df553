#include "apps/bench/bench_steps.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "apps/bench/bench_run.h"
#include "draft/registry.h"
#include "kernels/step_types.h"

namespace foretoken {

void StepBenchOptions::add_to(CLI::App& app) {
  app.add_option("--batch-sizes", batch_sizes, "Sequences of a step")
      ->delimiter(',')
      ->capture_default_str()
      ->check(at_least(1));
  app.add_option("--context", context, "Tokens behind each sequence")
      ->capture_default_str()
      ->check(at_least(0));
  app.add_option("--seconds", seconds, "Time for each figure, about")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 60.0));
  app.add_option("--read-tb-s", read_tb_s,
                 "Read bandwidth of the device in TB/s (default: known or measured)")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--tflops", tflops,
                 "Its rate of matrix products in TFLOP/s (default: known or measured)")
      ->check(CLI::Range(0.0, 1e9));
  add_output_json(app, output_json);
  engine.config.enable_prefix_caching = false;
  engine.log_level = "warning";
  engine.add_to(app);
}

Result<StepBenchRun> start_step_bench(const StepBenchOptions& options,
                                      const std::vector<int>& rows) {
  FT_ASSIGN_OR_RETURN(EngineConfig config, prepare_engine(options.engine));
  int drafts = 0;
  for (const int count : rows) {
    if (count <= kMaxOwnDrafts + 1) drafts = std::max(drafts, count - 1);
  }
  if (config.speculative.empty() && drafts > 0) {
    SpeculativeConfig room;
    room.method = first_look_up().name;
    room.num_speculative_tokens = drafts;
    room.length_policy = "fixed";
    config.speculative.push_back(room);
  }
  if (config.max_num_seqs == 0) {
    config.max_num_seqs = *std::max_element(options.batch_sizes.begin(), options.batch_sizes.end());
  }
  config.skip_tokenizer_init = true;
  StepBenchRun run;
  FT_ASSIGN_OR_RETURN(run.engine, EngineImpl::create(config, {}, EngineImpl::Start::kIdle));
  const StepBenchParts parts = run.engine->bench_parts();
  if (options.read_tb_s == 0 || options.tflops == 0) {
    FT_ASSIGN_OR_RETURN(run.limits, find_device_limits(parts.device, parts.queue));
  }
  if (options.read_tb_s > 0) run.limits.bytes_per_second = options.read_tb_s * 1e12;
  if (options.tflops > 0) run.limits.flops_per_second = options.tflops * 1e12;
  run.bench = std::make_unique<StepBench>(parts);
  return run;
}

std::string limits_text(const StepBenchRun& run) {
  return fmt::format("{}: {:.3g} TB/s, {:.3g} TFLOP/s\n", run.engine->info().device,
                     run.limits.bytes_per_second * 1e-12, run.limits.flops_per_second * 1e-12);
}

}  // namespace foretoken
