#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "apps/bench/bench_command.h"
#include "apps/bench/bench_run.h"
#include "apps/options/engine_options.h"
#include "apps/options/sampling_options.h"
#include "apps/terminal/interrupt.h"
#include "apps/terminal/progress_line.h"
#include "apps/terminal/report.h"

namespace foretoken {
namespace {

constexpr int kPercentiles[] = {10, 25, 50, 75, 90, 99};

struct LatencyOptions {
  EngineOptions engine;
  int input_len = 32;
  int output_len = 128;
  int batch_size = 8;
  int num_iters_warmup = 10;
  int num_iters = 30;
  double temperature = 1;
  SpeculativeParams speculative;
  std::string output_json;
};

struct LatencyResult {
  std::vector<double> seconds;  // of each iteration
  RequestStats stats;           // of all of them
};

std::vector<Request> random_requests(const LatencyOptions& options, int vocab_size) {
  std::mt19937_64 generator(0);
  std::vector<Request> requests(static_cast<size_t>(options.batch_size));
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].request_id = "bench-" + std::to_string(i);
    requests[i].sampling.max_tokens = options.output_len;
    requests[i].sampling.ignore_eos = true;
    requests[i].sampling.temperature = static_cast<float>(options.temperature);
    requests[i].speculative = options.speculative;
    for (int k = 0; k < options.input_len; ++k) {
      requests[i].prompt_token_ids.push_back(
          static_cast<int32_t>(generator() % static_cast<uint64_t>(vocab_size)));
    }
  }
  return requests;
}

Result<LatencyResult> measure(Engine& engine, const LatencyOptions& options) {
  const std::vector<Request> requests = random_requests(options, engine.info().vocab_size);
  LatencyResult result;
  ProgressLine progress;
  const int num_all = options.num_iters_warmup + options.num_iters;
  for (int i = 0; i < num_all; ++i) {
    const bool warm_up = i < options.num_iters_warmup;
    if (progress.due()) {
      progress.show(
          fmt::format("iteration {} of {}{}", i + 1, num_all, warm_up ? " (warm-up)" : ""));
    }
    FT_ASSIGN_OR_RETURN(const BenchRun run, run_bench_requests(engine, requests, {}));
    if (warm_up) continue;
    result.seconds.push_back(run.seconds);
    result.stats += run.stats;
  }
  return result;
}

// Linear between the two nearest values, as numpy does it.
double percentile(const std::vector<double>& sorted, int percent) {
  const double place = static_cast<double>(sorted.size() - 1) * percent / 100;
  const auto below = static_cast<size_t>(std::floor(place));
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

double average(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void print_result(const LatencyResult& result, const LatencyOptions& options,
                  const Engine& engine) {
  std::vector<double> sorted = result.seconds;
  std::sort(sorted.begin(), sorted.end());
  const double mean = average(sorted);
  std::string text = fmt::format("Avg latency: {:.6f} seconds\n", mean);
  for (const int percent : kPercentiles) {
    text += fmt::format("{}% percentile latency: {:.6f} seconds\n", percent,
                        percentile(sorted, percent));
  }
  text += fmt::format("{:.4f} ms per output token of a sequence, {:.1f} tokens/s in all\n",
                      1e3 * mean / options.output_len,
                      double{1} * options.batch_size * options.output_len / mean);
  const std::string timing = timing_line(engine.stats().timing);
  if (!timing.empty()) text += timing + "\n";
  if (!engine.info().drafter.empty()) text += bench_drafts_text(result.stats, engine.info());
  std::fputs(text.c_str(), stdout);
}

// The keys of vLLM's file, and the drafting counts.
Status write_json(const LatencyResult& result, const LatencyOptions& options,
                  const EngineInfo& info) {
  std::vector<double> sorted = result.seconds;
  std::sort(sorted.begin(), sorted.end());
  nlohmann::ordered_json object;
  object["avg_latency"] = average(sorted);
  object["latencies"] = result.seconds;
  for (const int percent : kPercentiles) {
    object["percentiles"][std::to_string(percent)] = percentile(sorted, percent);
  }
  object["drafts"] = drafts_json(result.stats, info);
  return write_bench_json(object, options.output_json);
}

Status run_latency(const LatencyOptions& options) {
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, start_engine(options.engine));
  FT_RETURN_IF_ERROR(check_bench_lengths(options.input_len, options.output_len, engine->info()));
  FT_ASSIGN_OR_RETURN(const LatencyResult result, measure(*engine, options));
  print_result(result, options, *engine);
  return options.output_json.empty() ? Status() : write_json(result, options, engine->info());
}

int latency(const LatencyOptions& options) {
  catch_interrupts();
  return bench_exit_code(run_latency(options));
}

}  // namespace

void add_bench_latency(CLI::App& bench, std::function<int()>* run) {
  CLI::App* command = bench.add_subcommand("latency", "Seconds of one batch of random prompts");
  auto options = std::make_shared<LatencyOptions>();
  const auto add = [&](const char* name, int& value, const char* help, int64_t low) {
    command->add_option(name, value, help)->capture_default_str()->check(at_least(low));
  };
  add("--input-len", options->input_len, "Tokens of a prompt", 1);
  add("--output-len", options->output_len, "Tokens of an output", 1);
  add("--batch-size", options->batch_size, "Prompts in the batch", 1);
  add("--num-iters-warmup", options->num_iters_warmup, "Iterations that do not count", 0);
  add("--num-iters", options->num_iters, "Iterations that count", 1);
  command->add_option("--temperature", options->temperature, "0: always the likeliest token")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100.0));
  add_output_json(*command, options->output_json);
  add_speculative_flag(*command, options->speculative);
  // Every iteration has the same prompts, which a warm cache would skip.
  options->engine.config.enable_prefix_caching = false;
  options->engine.offline = true;
  options->engine.add_to(*command);
  command->callback([options, run] { *run = [options] { return latency(*options); }; });
}

}  // namespace foretoken
