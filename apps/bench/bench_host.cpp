#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <memory>

#include "apps/bench/bench_command.h"
#include "apps/bench/bench_run.h"
#include "apps/options/engine_options.h"
#include "apps/terminal/interrupt.h"
#include "apps/terminal/report.h"
#include "compat/combination.h"
#include "engine/engine_impl.h"
#include "engine/measure/null_queue.h"

namespace foretoken {
namespace {

struct HostOptions {
  EngineOptions engine;
  int batch_size = 256;
  int input_len = 32;
  int output_len = 512;
  int num_accepted = 2;
  int step_us = 0;
};

std::vector<Request> requests_of(const HostOptions& options) {
  std::vector<Request> requests(static_cast<size_t>(options.batch_size));
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].sampling.max_tokens = options.output_len;
    requests[i].sampling.ignore_eos = true;
    for (int k = 0; k < options.input_len; ++k) {
      requests[i].prompt_token_ids.push_back(static_cast<int32_t>(i + 1) + k);
    }
  }
  return requests;
}

// A phase as the mean over the steps between two looks.
double mean_us(int64_t StepTiming::* phase, const StepTiming& before, const StepTiming& after) {
  const auto num_steps = static_cast<double>(after.num_planned - before.num_planned);
  return static_cast<double>(after.*phase - before.*phase) / num_steps / 1e3;
}

std::string host_text(const StepTiming& before, const StepTiming& after) {
  struct Named {
    const char* name;
    int64_t StepTiming::* phase;
  };
  constexpr Named kPhases[] = {{"plan", &StepTiming::plan_ns},
                               {"encode", &StepTiming::encode_ns},
                               {"submit", &StepTiming::submit_ns},
                               {"reconcile", &StepTiming::reconcile_ns}};
  std::string text =
      fmt::format("{} steps; microseconds a step:\n", after.num_planned - before.num_planned);
  double sum = 0;
  for (const auto& [name, phase] : kPhases) {
    const double us = mean_us(phase, before, after);
    text += fmt::format("  {:<10}{:8.2f}\n", name, us);
    sum += us;
  }
  return text + fmt::format("  {:<10}{:8.2f}\n  {:<10}{:8.2f}\n", "together", sum, "wait",
                            mean_us(&StepTiming::wait_ns, before, after));
}

Status run_host(const HostOptions& options) {
  FT_ASSIGN_OR_RETURN(EngineConfig config, prepare_engine(options.engine));
  Combination measured = combination_of(config);
  measured.host_alone = true;
  FT_RETURN_IF_ERROR(compat(measured));
  TestHooks hooks;
  hooks.wrap_queue = [&](const std::unique_ptr<Queue>&) {
    return make_null_queue(
        {.step_ns = int64_t{options.step_us} * 1000, .num_accepted = options.num_accepted});
  };
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<EngineImpl> engine, EngineImpl::create(config, hooks));
  FT_RETURN_IF_ERROR(check_bench_lengths(options.input_len, options.output_len, engine->info()));
  FT_RETURN_IF_ERROR(check_bench_batch(options.batch_size, engine->info()));
  StepTiming before;
  for (const bool counts : {false, true}) {
    if (counts) before = engine->stats().timing;
    FT_RETURN_IF_ERROR(run_bench_requests(*engine, requests_of(options), {}).status());
  }
  std::fputs(host_text(before, engine->stats().timing).c_str(), stdout);
  return {};
}

}  // namespace

void add_bench_host(CLI::App& bench, std::function<int()>* run) {
  CLI::App* command = bench.add_subcommand(
      "host", "What the engine thread spends on a step, with a device that computes nothing");
  auto options = std::make_shared<HostOptions>();
  const auto add = [&](const char* name, int& value, const char* help, int64_t low) {
    command->add_option(name, value, help)->capture_default_str()->check(at_least(low));
  };
  add("--batch-size", options->batch_size, "Sequences", 1);
  add("--input-len", options->input_len, "Tokens of a prompt", 1);
  add("--output-len", options->output_len, "Tokens of an output", 1);
  add("--num-accepted", options->num_accepted, "Drafts of a sequence and step that are accepted",
      0);
  add("--step-us", options->step_us, "Microseconds that the device seems to take for a step", 0);
  options->engine.config.max_num_seqs = 256;
  options->engine.config.enable_prefix_caching = false;
  options->engine.add_to(*command);
  command->callback([options, run] {
    *run = [options] {
      catch_interrupts();
      return bench_exit_code(run_host(*options));
    };
  });
}

}  // namespace foretoken
