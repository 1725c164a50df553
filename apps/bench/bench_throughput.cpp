#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <memory>

#include "apps/bench/bench_command.h"
#include "apps/bench/bench_dataset.h"
#include "apps/bench/bench_run.h"
#include "apps/options/engine_options.h"
#include "apps/options/sampling_options.h"
#include "apps/terminal/interrupt.h"
#include "apps/terminal/progress_line.h"
#include "apps/terminal/report.h"
#include "compat/compat.h"

namespace foretoken {
namespace {

struct ThroughputOptions {
  EngineOptions engine;
  DatasetOptions dataset;
  int n = 1;
  int max_concurrency = 0;
  int num_warmups = 0;
  double temperature = 1.0;
  bool async_engine = false;
  bool disable_detokenize = false;
  SpeculativeParams speculative;
  std::string output_json;
};

struct Totals {
  size_t num_requests = 0;
  int64_t num_prompt_tokens = 0;
  BenchRun run;

  double num_tokens() const {
    return static_cast<double>(num_prompt_tokens + run.stats.num_output_tokens);
  }
};

std::vector<Request> make_throughput_requests(const ThroughputOptions& options,
                                              const std::vector<BenchPrompt>& prompts) {
  std::vector<Request> requests(prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    Request& request = requests[i];
    request.request_id = "bench-" + std::to_string(i);
    request.prompt_token_ids = prompts[i].ids;
    request.sampling.n = options.n;
    request.sampling.max_tokens = prompts[i].output_len;
    request.sampling.temperature = static_cast<float>(options.temperature);
    request.sampling.ignore_eos = true;
    request.speculative = options.speculative;
    request.sampling.detokenize = !options.disable_detokenize;
  }
  return requests;
}

// The first prompts once more, also where there are fewer than that.
std::vector<Request> warm_up_requests(const ThroughputOptions& options,
                                      const std::vector<Request>& requests) {
  std::vector<Request> first;
  for (int i = 0; i < options.num_warmups; ++i) {
    first.push_back(requests[static_cast<size_t>(i) % requests.size()]);
    first.back().request_id = "warm-up-" + std::to_string(i);
  }
  return first;
}

void print_totals(const Totals& totals, const EngineInfo& info) {
  const double seconds = totals.run.seconds;
  const RequestStats& stats = totals.run.stats;
  std::string text = fmt::format(
      "Throughput: {:.2f} requests/s, {:.2f} total tokens/s, {:.2f} output tokens/s\n"
      "Total num prompt tokens:  {}\nTotal num output tokens:  {}\n",
      static_cast<double>(totals.num_requests) / seconds, totals.num_tokens() / seconds,
      static_cast<double>(stats.num_output_tokens) / seconds, totals.num_prompt_tokens,
      stats.num_output_tokens);
  if (!info.drafter.empty()) text += bench_drafts_text(stats, info);
  std::fputs(text.c_str(), stdout);
}

// The keys of vLLM's file, and the drafting counts.
nlohmann::ordered_json totals_json(const Totals& totals, const EngineInfo& info) {
  const double seconds = totals.run.seconds;
  return {{"elapsed_time", seconds},
          {"num_requests", totals.num_requests},
          {"total_num_tokens", static_cast<int64_t>(totals.num_tokens())},
          {"requests_per_second", static_cast<double>(totals.num_requests) / seconds},
          {"tokens_per_second", totals.num_tokens() / seconds},
          {"output_tokens_per_second",
           static_cast<double>(totals.run.stats.num_output_tokens) / seconds},
          {"drafts", drafts_json(totals.run.stats, info)}};
}

Status run_throughput(const ThroughputOptions& options) {
  if (options.dataset.name != "random") {
    FT_RETURN_IF_ERROR(compat({.texts = "prompts of --dataset-name " + options.dataset.name +
                                        " (those of --dataset-name random are ids)",
                               .has_tokenizer = !options.engine.config.skip_tokenizer_init}));
  }
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, start_engine(options.engine));
  DatasetOptions dataset = options.dataset;
  dataset.seed = options.engine.config.seed;
  FT_ASSIGN_OR_RETURN(const std::vector<BenchPrompt> prompts, load_bench_prompts(*engine, dataset));
  Totals totals;
  totals.num_requests = prompts.size();
  for (const BenchPrompt& prompt : prompts) {
    totals.num_prompt_tokens += static_cast<int64_t>(prompt.ids.size());
  }
  ProgressLine progress;
  const auto show = [&](size_t num_done) {
    if (!progress.due()) return;
    progress.show(fmt::format("{} of {} requests done", num_done, prompts.size()));
  };
  const std::vector<Request> requests = make_throughput_requests(options, prompts);
  const auto limit = static_cast<size_t>(options.max_concurrency);
  FT_RETURN_IF_ERROR(
      run_bench_requests(*engine, warm_up_requests(options, requests), {}, limit).status());
  FT_ASSIGN_OR_RETURN(totals.run, run_bench_requests(*engine, requests, show, limit));
  progress.clear();
  print_totals(totals, engine->info());
  if (options.output_json.empty()) return {};
  return write_bench_json(totals_json(totals, engine->info()), options.output_json);
}

int throughput(const ThroughputOptions& options) {
  catch_interrupts();
  return bench_exit_code(run_throughput(options));
}

}  // namespace

void add_bench_throughput(CLI::App& bench, std::function<int()>* run) {
  CLI::App* command =
      bench.add_subcommand("throughput", "Requests and tokens a second of many prompts at once");
  auto options = std::make_shared<ThroughputOptions>();
  options->dataset.add_to(*command);
  command->add_option("--n", options->n, "Outputs for each prompt")
      ->capture_default_str()
      ->check(at_least(1));
  command
      ->add_option("--max-concurrency", options->max_concurrency,
                   "Prompts at one time; the next one follows the end of another (default: all)")
      ->check(at_least(1));
  command->add_option("--num-warmups", options->num_warmups, "Prompts before, which do not count")
      ->capture_default_str()
      ->check(at_least(0));
  command->add_option("--temperature", options->temperature, "0: always the likeliest token")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100.0));
  command->add_flag("--async-engine", options->async_engine,
                    "Accepted for vLLM's sake: the engine is always asynchronous");
  command->add_flag("--disable-detokenize", options->disable_detokenize,
                    "Make no text of the tokens");
  add_output_json(*command, options->output_json);
  add_speculative_flag(*command, options->speculative);
  options->engine.offline = true;
  options->engine.add_to(*command);
  command->callback([options, run] { *run = [options] { return throughput(*options); }; });
}

}  // namespace foretoken
