#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "apps/bench/bench_command.h"
#include "apps/bench/bench_dataset.h"
#include "apps/bench/bench_run.h"
#include "apps/bench/pair_stats.h"
#include "apps/options/engine_options.h"
#include "apps/options/engine_variant.h"
#include "apps/terminal/interrupt.h"
#include "apps/terminal/progress_line.h"
#include "apps/terminal/report.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr std::chrono::milliseconds kPause(1);  // between the turns of two engines

struct PairOptions {
  EngineOptions engine;
  DatasetOptions dataset;
  std::vector<std::string> variants = {"off", "adaptive"};
  int batch_size = 1;
  int prompts_per_turn = 0;  // 0: as batch_size
  int min_round_ms = 500;
  int num_pairs = 15;
  int num_warmup = 1;
  double temperature = 0;
  std::optional<uint64_t> sampling_seed;  // none: each prompt has its own
  std::string output_json;
};

// One way to run the engine, and what its rounds took.
struct PairedVariant {
  std::string name;
  std::unique_ptr<Engine> engine;
  std::vector<double> seconds;
  RequestStats stats;
  int64_t num_differing = 0;  // outputs that are not those of the first variant
};

Result<std::vector<PairedVariant>> start_paired_variants(const PairOptions& options) {
  FT_ASSIGN_OR_RETURN(EngineConfig base, prepare_engine(options.engine));
  for (const std::string& name : options.variants) {
    if (name == "as-given") FT_RETURN_IF_ERROR(check_drafts_of_variant(base, name));
  }
  base.max_num_seqs = options.batch_size;
  // The engines share what the flag grants.
  base.gpu_memory_utilization /= static_cast<double>(options.variants.size());
  FT_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Engine>> engines,
                      start_engines(base, options.variants));
  std::vector<PairedVariant> variants(engines.size());
  for (size_t i = 0; i < engines.size(); ++i) {
    variants[i].name = options.variants[i];
    variants[i].engine = std::move(engines[i]);
  }
  return variants;
}

// The requests of a turn: the same for every variant, others in the next turn.
std::vector<Request> turn_requests(const PairOptions& options,
                                   const std::vector<BenchPrompt>& prompts, int64_t turn) {
  const int count = options.prompts_per_turn > 0 ? options.prompts_per_turn : options.batch_size;
  std::vector<Request> requests(static_cast<size_t>(count));
  for (size_t i = 0; i < requests.size(); ++i) {
    const size_t at = static_cast<size_t>(turn) * requests.size() + i;
    const BenchPrompt& prompt = prompts[at % prompts.size()];
    Request& request = requests[i];
    request.request_id = fmt::format("turn-{}-{}", turn, i);
    request.prompt_token_ids = prompt.ids;
    request.sampling.max_tokens = prompt.output_len;
    request.sampling.temperature = static_cast<float>(options.temperature);
    request.sampling.seed = options.sampling_seed.value_or(at % prompts.size());
    request.sampling.detokenize = false;
    request.sampling.ignore_eos = options.dataset.name == "random";
  }
  return requests;
}

int64_t count_differing(const BenchRun& a, const BenchRun& b) {
  int64_t count = 0;
  for (size_t i = 0; i < a.token_ids.size(); ++i) count += a.token_ids[i] != b.token_ids[i] ? 1 : 0;
  return count;
}

// Each variant once, the same requests, in an order that changes from turn to turn.
Result<std::vector<BenchRun>> run_turn(const PairOptions& options,
                                       const std::vector<BenchPrompt>& prompts, int64_t turn,
                                       const std::vector<PairedVariant>& variants) {
  const std::vector<Request> requests = turn_requests(options, prompts, turn);
  const auto count = static_cast<int64_t>(variants.size());
  std::vector<BenchRun> runs(variants.size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t forward = (turn + i) % count;
    const auto at = static_cast<size_t>(turn / count % 2 == 0 ? forward : count - 1 - forward);
    // The threads of the engine before go to sleep first.
    std::this_thread::sleep_for(kPause);
    FT_ASSIGN_OR_RETURN(runs[at], run_bench_requests(*variants[at].engine, requests, {}));
  }
  return runs;
}

// Turns until the fastest variant has run for the time of a round. They warm the engines up.
Result<int> find_turns_per_round(const PairOptions& options,
                                 const std::vector<BenchPrompt>& prompts,
                                 const std::vector<PairedVariant>& variants) {
  std::vector<double> seconds(variants.size());
  const double wanted = options.min_round_ms / 1e3;
  for (int num_turns = 0;;) {
    FT_ASSIGN_OR_RETURN(const std::vector<BenchRun> runs,
                        run_turn(options, prompts, num_turns, variants));
    ++num_turns;
    for (size_t i = 0; i < runs.size(); ++i) seconds[i] += runs[i].seconds;
    if (*std::min_element(seconds.begin(), seconds.end()) >= wanted) return num_turns;
  }
}

Status run_paired_round(const PairOptions& options, const std::vector<BenchPrompt>& prompts,
                        int64_t first_turn, int num_turns, std::vector<PairedVariant>* variants) {
  for (PairedVariant& variant : *variants) variant.seconds.push_back(0);
  for (int64_t turn = first_turn; turn < first_turn + num_turns; ++turn) {
    FT_ASSIGN_OR_RETURN(const std::vector<BenchRun> runs,
                        run_turn(options, prompts, turn, *variants));
    for (size_t i = 0; i < runs.size(); ++i) {
      PairedVariant& variant = (*variants)[i];
      variant.seconds.back() += runs[i].seconds;
      variant.stats += runs[i].stats;
      variant.num_differing += count_differing(runs.front(), runs[i]);
    }
  }
  return {};
}

// Returns the turns of a round.
Result<int> run_rounds(const PairOptions& options, const std::vector<BenchPrompt>& prompts,
                       std::vector<PairedVariant>* variants) {
  FT_ASSIGN_OR_RETURN(const int num_turns, find_turns_per_round(options, prompts, *variants));
  int64_t turn = num_turns;
  for (; turn < int64_t{options.num_warmup} * num_turns; ++turn) {
    FT_RETURN_IF_ERROR(run_turn(options, prompts, turn, *variants).status());
  }
  ProgressLine progress;
  for (int round = 0; round < options.num_pairs; ++round, turn += num_turns) {
    if (progress.due()) progress.show(fmt::format("round {} of {}", round + 1, options.num_pairs));
    FT_RETURN_IF_ERROR(run_paired_round(options, prompts, turn, num_turns, variants));
  }
  return num_turns;
}

// How much faster `b` is than `a`, round by round.
json paired_speed_ratio(const PairedVariant& a, const PairedVariant& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < a.seconds.size(); ++i) ratios.push_back(a.seconds[i] / b.seconds[i]);
  const MedianInterval found = median_interval(ratios);
  return {{"of", b.name},     {"over", a.name},     {"median", found.median},
          {"low", found.low}, {"high", found.high}, {"ratios", ratios}};
}

// Of every variant over the first one, and of the first adaptive one over the best fixed one.
json all_ratios(const std::vector<PairedVariant>& variants) {
  json ratios = json::array();
  for (size_t i = 1; i < variants.size(); ++i) {
    ratios.push_back(paired_speed_ratio(variants.front(), variants[i]));
  }
  const PairedVariant* best = nullptr;
  const PairedVariant* adaptive = nullptr;
  for (const PairedVariant& variant : variants) {
    if (variant.name == "adaptive") adaptive = &variant;
    if (variant.name.rfind("fixed", 0) != 0) continue;
    if (best == nullptr || median(variant.seconds) < median(best->seconds)) best = &variant;
  }
  if (best != nullptr && adaptive != nullptr && best != &variants.front()) {
    ratios.push_back(paired_speed_ratio(*best, *adaptive));
  }
  return ratios;
}

json pairs_json(const PairOptions& options, int turns_per_round,
                const std::vector<PairedVariant>& variants) {
  json all = {{"batch_size", options.batch_size},
              {"num_pairs", options.num_pairs},
              {"turns_per_round", turns_per_round}};
  all["variants"] = json::array();
  for (const PairedVariant& variant : variants) {
    const double seconds = median(variant.seconds);
    const double tokens = static_cast<double>(variant.stats.num_output_tokens) / options.num_pairs;
    all["variants"].push_back({{"name", variant.name},
                               {"median_seconds", seconds},
                               {"tokens_per_second", tokens / seconds},
                               {"seconds", variant.seconds},
                               {"differing_outputs", variant.num_differing},
                               {"drafts", drafts_json(variant.stats, variant.engine->info())}});
  }
  all["ratios"] = all_ratios(variants);
  return all;
}

void print_pairs(const json& all) {
  std::string text;
  for (const json& variant : all["variants"]) {
    const json& drafts = variant["drafts"];
    text += fmt::format("{:<12} {:.4f} s a round, {:.1f} tokens/s, mean acceptance length {:.2f}\n",
                        variant["name"].get<std::string>(), variant["median_seconds"].get<double>(),
                        variant["tokens_per_second"].get<double>(),
                        drafts["mean_acceptance_length"].get<double>());
  }
  for (const json& ratio : all["ratios"]) {
    text += fmt::format("{} over {}: {:.3f} times as fast (95 % interval {:.3f} to {:.3f})\n",
                        ratio["of"].get<std::string>(), ratio["over"].get<std::string>(),
                        ratio["median"].get<double>(), ratio["low"].get<double>(),
                        ratio["high"].get<double>());
  }
  std::fputs(text.c_str(), stdout);
}

Status run_pairs(const PairOptions& options) {
  FT_ASSIGN_OR_RETURN(std::vector<PairedVariant> variants, start_paired_variants(options));
  DatasetOptions dataset = options.dataset;
  dataset.seed = options.engine.config.seed;
  FT_ASSIGN_OR_RETURN(const std::vector<BenchPrompt> prompts,
                      load_bench_prompts(*variants.front().engine, dataset));
  FT_ASSIGN_OR_RETURN(const int turns_per_round, run_rounds(options, prompts, &variants));
  const json all = pairs_json(options, turns_per_round, variants);
  print_pairs(all);
  std::fputs(synthetic_note(variants.back().engine->info()).c_str(), stdout);
  return options.output_json.empty() ? Status() : write_bench_json(all, options.output_json);
}

}  // namespace

void add_bench_pairs(CLI::App& bench, std::function<int()>* run) {
  CLI::App* command = bench.add_subcommand(
      "pairs", "Speed with and without speculation: several engines in one process, in turns");
  auto options = std::make_shared<PairOptions>();
  options->dataset.num_prompts = 200;
  options->dataset.add_to(*command);
  command
      ->add_option("--variants", options->variants,
                   "Engines to compare, the first with the others: off, adaptive, as-given, fixed, "
                   "fixed:K, each also with +B: B branches, and @N: N steps in flight")
      ->delimiter(',')
      ->capture_default_str();
  const auto add = [&](const char* name, int& value, const char* help, int64_t low) {
    command->add_option(name, value, help)->capture_default_str()->check(at_least(low));
  };
  add("--batch-size", options->batch_size, "Sequences in a step at most", 1);
  add("--prompts-per-turn", options->prompts_per_turn,
      "Prompts that the variants get in turns; 0: --batch-size", 0);
  add("--min-round-ms", options->min_round_ms,
      "A round has so many turns that the fastest variant takes as long at least", 0);
  add("--num-pairs", options->num_pairs, "Rounds that count", 1);
  add("--num-iters-warmup", options->num_warmup, "Rounds that do not count; at least one is run",
      0);
  command->add_option("--temperature", options->temperature, "0: always the likeliest token")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100.0));
  command->add_option("--sampling-seed", options->sampling_seed,
                      "Of every request; without it each prompt has its own");
  add_output_json(*command, options->output_json);
  // Every variant has the same prompts; rounds may repeat them.
  options->engine.config.enable_prefix_caching = false;
  options->engine.log_level = "warning";
  options->engine.add_to(*command);
  command->callback([options, run] {
    *run = [options] {
      catch_interrupts();
      return bench_exit_code(run_pairs(*options));
    };
  });
}

}  // namespace foretoken
