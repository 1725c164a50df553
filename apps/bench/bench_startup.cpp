#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/bench/bench_command.h"
#include "apps/bench/bench_run.h"
#include "apps/options/engine_options.h"
#include "apps/terminal/child_process.h"
#include "apps/terminal/interrupt.h"
#include "apps/terminal/report.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

struct StartupOptions {
  EngineOptions engine;
  int input_len = 32;
  int num_iters_warmup = 1;
  int num_iters = 3;
  std::string output_json;
  int64_t started_ns = 0;  // when the parent started this process; 0: this is the parent
};

int64_t wall_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double seconds_since(int64_t ns) { return static_cast<double>(wall_ns() - ns) / 1e9; }

// In a process of its own: the engine, and one token. Prints a line of JSON.
Status start_once(const StartupOptions& options) {
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, start_engine(options.engine));
  const double ready = seconds_since(options.started_ns);
  Request request;
  request.prompt_token_ids.assign(static_cast<size_t>(options.input_len), 1);
  request.sampling.max_tokens = 1;
  request.sampling.ignore_eos = true;
  FT_RETURN_IF_ERROR(run_bench_requests(*engine, {request}, {}).status());
  const double first_token = seconds_since(options.started_ns);
  const EngineInfo& info = engine->info();
  Json phases = Json::object();
  double in_engine = 0;
  for (const StartPhase& phase : info.start_phases) {
    phases[phase.name] = phase.seconds;
    in_engine += phase.seconds;
  }
  Json line;
  line["time_to_first_token"] = first_token;
  line["startup_time"] = ready;
  line["process_time"] = ready - in_engine;
  line["weight_bytes"] = info.weight_bytes;
  line["kv_cache_bytes"] = info.kv_cache_bytes;
  line["phases"] = std::move(phases);
  std::printf("%s\n", line.dump().c_str());
  return {};
}

// The same command line, as a child's.
Result<Json> run_child() {
  std::vector<std::string> arguments = own_arguments();
  arguments.push_back("--started-ns");
  arguments.push_back(std::to_string(wall_ns()));
  FT_ASSIGN_OR_RETURN(const std::string text, run_this_program(arguments));
  Json line = Json::parse(text, nullptr, false);
  if (line.is_discarded()) return internal_error("a child process printed no result");
  return line;
}

double mean_of(const std::vector<Json>& runs, const Json::json_pointer& key) {
  double sum = 0;
  for (const Json& run : runs) sum += run.at(key).get<double>();
  return sum / static_cast<double>(runs.size());
}

void print_runs(const std::vector<Json>& runs) {
  std::vector<double> times;
  for (const Json& run : runs) times.push_back(run["time_to_first_token"].get<double>());
  std::sort(times.begin(), times.end());
  const double ready = mean_of(runs, Json::json_pointer("/startup_time"));
  std::string text = fmt::format(
      "Avg time from process start to first token: {:.3f} seconds ({:.3f} to {:.3f})\n"
      "Avg startup time: {:.3f} seconds\n"
      "  {:<14} {:.3f}\n",
      std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size()),
      times.front(), times.back(), ready, "process",
      mean_of(runs, Json::json_pointer("/process_time")));
  for (const auto& [name, value] : runs.front()["phases"].items()) {
    const double seconds = mean_of(runs, Json::json_pointer("/phases") / name);
    text += fmt::format("  {:<14} {:.3f}", name, seconds);
    if (name == "weights" && seconds > 0) {
      const double bytes = runs.front()["weight_bytes"].get<double>();
      text += fmt::format("  ({:.2f} GB, {:.1f} GB/s)", bytes / 1e9, bytes / seconds / 1e9);
    }
    text += "\n";
  }
  std::fputs(text.c_str(), stdout);
}

// Keys as of vLLM's file where they mean the same.
Json results(const std::vector<Json>& runs) {
  Json object;
  object["avg_startup_time"] = mean_of(runs, Json::json_pointer("/startup_time"));
  object["avg_time_to_first_token"] = mean_of(runs, Json::json_pointer("/time_to_first_token"));
  object["runs"] = runs;
  return object;
}

Status run_startup(const StartupOptions& options) {
  if (options.started_ns > 0) return start_once(options);
  std::vector<Json> runs;
  for (int i = 0; i < options.num_iters_warmup + options.num_iters; ++i) {
    if (interrupt_flag().load()) return aborted("the benchmark was interrupted");
    FT_ASSIGN_OR_RETURN(Json run, run_child());
    if (i >= options.num_iters_warmup) runs.push_back(std::move(run));
  }
  print_runs(runs);
  return options.output_json.empty() ? Status()
                                     : write_bench_json(results(runs), options.output_json);
}

int startup(const StartupOptions& options) {
  catch_interrupts();
  return bench_exit_code(run_startup(options));
}

}  // namespace

void add_bench_startup(CLI::App& bench, std::function<int()>* run) {
  CLI::App* command =
      bench.add_subcommand("startup", "Seconds from the start of a process to its first token");
  auto options = std::make_shared<StartupOptions>();
  const auto add = [&](const char* name, int& value, const char* help, int64_t low) {
    command->add_option(name, value, help)->capture_default_str()->check(at_least(low));
  };
  add("--input-len", options->input_len, "Tokens of the prompt", 1);
  add("--num-iters-warmup", options->num_iters_warmup,
      "Processes that do not count: they bring files into the page cache", 0);
  add("--num-iters", options->num_iters, "Processes that count", 1);
  add_output_json(*command, options->output_json);
  command->add_option("--started-ns", options->started_ns)->group("");  // of a child
  options->engine.add_to(*command);
  command->callback([options, run] { *run = [options] { return startup(*options); }; });
}

}  // namespace foretoken
