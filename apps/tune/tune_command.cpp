#include <foretoken/limits.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "apps/bench/bench_run.h"
#include "apps/flags/file_validators.h"
#include "apps/flags/flag_table.h"
#include "apps/options/commands.h"
#include "apps/options/engine_options.h"
#include "apps/options/models/speculative_list.h"
#include "apps/terminal/interrupt.h"
#include "apps/terminal/report.h"
#include "apps/tune/tune_candidates.h"
#include "apps/tune/tune_race.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// Of the time, what the comparisons of the choice with no drafts take: with adaptive lengths, and
// with those of each batch size.
constexpr double kShareOfChecks = 0.3;
constexpr int kRoundsOfCheck = 12;

struct TuneOptions {
  EngineOptions engine;
  std::string prompts;
  int num_prompts = 64;
  int output_len = 0;
  std::vector<std::string> drafters;
  std::vector<int> lengths = {1, 2, 3, 5, 8};
  std::vector<int> batch_sizes = {1, 4, 16};
  double minutes = 5;
  double temperature = 0;
  std::string output = "foretoken-tune.yaml";
  std::string output_json;
  std::string plot;
};

// All that was measured.
struct Tuning {
  std::vector<bench::TunedLength> lengths;
  // The choice with adaptive lengths, and with the best ones by the number of sequences.
  std::vector<bench::TunedLength> checks;
  std::vector<bench::TunedLength> by_batch_checks;
  std::vector<bench::TunedRange> by_batch;
  json entry;  // null: no drafter pays
  int64_t num_outputs = 0;
  int64_t num_differing = 0;
};

EngineConfig engine_config(const EngineConfig& base, const TuneOptions& options,
                           std::vector<SpeculativeConfig> drafters) {
  EngineConfig config = base;
  config.speculative = std::move(drafters);
  config.max_num_seqs = *std::max_element(options.batch_sizes.begin(), options.batch_sizes.end());
  // Variants have the same prompts.
  config.enable_prefix_caching = false;
  return config;
}

Result<std::vector<BenchPrompt>> load_prompts(const Engine& engine, const TuneOptions& options) {
  DatasetOptions dataset;
  if (!options.prompts.empty()) {
    dataset.name = options.prompts.ends_with(".txt") ? "lines" : "custom";
    dataset.path = options.prompts;
  }
  dataset.num_prompts = options.num_prompts;
  dataset.output_len = options.output_len;
  return load_bench_prompts(engine, dataset);
}

// Races of these variants at every batch size, which share the time: more sequences take longer,
// but less than as many times as long. What one takes too much the next ones lack.
Status race_all(Engine& engine, const TuneOptions& options,
                const std::vector<TuneVariant>& variants, double seconds,
                std::vector<bench::TunedLength>* lengths, Tuning* tuning) {
  FT_ASSIGN_OR_RETURN(const std::vector<BenchPrompt> prompts, load_prompts(engine, options));
  double all_shares = 0;
  for (const int batch_size : options.batch_sizes) all_shares += std::sqrt(batch_size);
  Clock::time_point deadline = Clock::now();
  for (const int batch_size : options.batch_sizes) {
    const std::chrono::duration<double> own(seconds * std::sqrt(batch_size) / all_shares);
    deadline += std::chrono::duration_cast<Clock::duration>(own);
    TuneRaceOptions race{
        .batch_size = batch_size, .temperature = options.temperature, .deadline = deadline};
    if (variants.size() == 1) race.max_rounds = kRoundsOfCheck;
    FT_ASSIGN_OR_RETURN(const TuneRace run, run_tune_race(engine, prompts, variants, race));
    lengths->insert(lengths->end(), run.lengths.begin(), run.lengths.end());
    tuning->num_outputs += run.num_outputs;
    tuning->num_differing += run.num_differing;
  }
  return {};
}

Status measure_group(const EngineConfig& base, const TuneOptions& options,
                     const std::vector<TuneDrafter>& group, const std::vector<std::string>& methods,
                     double seconds, Tuning* tuning) {
  std::vector<SpeculativeConfig> drafters;
  for (const TuneDrafter& drafter : group) drafters.push_back(drafter.config);
  std::unique_ptr<Engine> engine;
  FT_RETURN_IF_ERROR(make_engine(engine_config(base, options, std::move(drafters)), &engine));
  std::vector<TuneVariant> variants;
  for (const std::string& method : methods) {
    for (const int length : options.lengths) variants.push_back({method, length});
  }
  return race_all(*engine, options, variants, seconds, &tuning->lengths, tuning);
}

// A configuration as it would be served, beside no drafts in the same engine.
Status run_check(const EngineConfig& base, const TuneOptions& options, const json& entry,
                 const bench::TunedChoice& choice, std::vector<bench::TunedLength>* lengths,
                 Tuning* tuning) {
  FT_ASSIGN_OR_RETURN(std::vector<SpeculativeConfig> drafters,
                      parse_speculative_config(entry.dump(), base.model));
  std::unique_ptr<Engine> engine;
  FT_RETURN_IF_ERROR(make_engine(engine_config(base, options, std::move(drafters)), &engine));
  return race_all(*engine, options, {{choice.drafter, choice.num_draft_tokens}},
                  options.minutes * 60 * kShareOfChecks / 2, lengths, tuning);
}

// Whether it is faster than no drafts at some batch size and slower at none.
bool pays(const std::vector<bench::TunedLength>& checks) {
  return std::ranges::none_of(checks, [](const auto& one) { return one.high < 1; }) &&
         std::ranges::any_of(checks, [](const auto& one) { return one.low > 1; });
}

// The drafter of the choice with adaptive lengths and with those that were best at each batch size;
// the faster of the two stands where it pays.
Status check_choice(const EngineConfig& base, const TuneOptions& options,
                    const std::vector<TuneDrafter>& drafters, const bench::TunedChoice& choice,
                    Tuning* tuning) {
  const json adaptive = tuned_entry(drafters, choice.drafter, choice.num_draft_tokens);
  FT_RETURN_IF_ERROR(run_check(base, options, adaptive, choice, &tuning->checks, tuning));
  tuning->by_batch = bench::lengths_by_batch(tuning->lengths, choice.drafter);
  const json by_batch =
      tuned_entry(drafters, choice.drafter, choice.num_draft_tokens, tuning->by_batch);
  FT_RETURN_IF_ERROR(run_check(base, options, by_batch, choice, &tuning->by_batch_checks, tuning));
  if (pays(tuning->checks)) tuning->entry = adaptive;
  const bool is_faster =
      bench::mean_speed_up(tuning->by_batch_checks) > bench::mean_speed_up(tuning->checks);
  if (pays(tuning->by_batch_checks) && (tuning->entry.is_null() || is_faster))
    tuning->entry = by_batch;
  return {};
}

Result<Tuning> measure(const TuneOptions& options) {
  FT_ASSIGN_OR_RETURN(const EngineConfig base, prepare_engine(options.engine));
  if (!base.speculative.empty()) {
    return invalid_argument(
        "--speculative-config: tune measures every drafter that it finds; name others with "
        "--drafter");
  }
  const int longest = *std::max_element(options.lengths.begin(), options.lengths.end());
  FT_ASSIGN_OR_RETURN(const std::vector<TuneDrafter> drafters,
                      tune_drafters(base, options.drafters, longest));
  const std::vector<std::vector<TuneDrafter>> groups = tune_groups(drafters);
  const std::chrono::duration<double> seconds(options.minutes * 60 * (1 - kShareOfChecks));
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(seconds);
  Tuning tuning;
  const std::vector<std::vector<std::string>> methods = tune_methods(groups);
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::chrono::duration<double> left = end - Clock::now();
    const double share = std::max(left.count(), 0.0) / static_cast<double>(groups.size() - i);
    FT_RETURN_IF_ERROR(measure_group(base, options, groups[i], methods[i], share, &tuning));
  }
  const std::optional<bench::TunedChoice> choice = bench::choose_drafts(tuning.lengths);
  if (!choice) return tuning;
  FT_RETURN_IF_ERROR(check_choice(base, options, drafters, *choice, &tuning));
  return tuning;
}

json lengths_json(const std::vector<bench::TunedLength>& lengths) {
  json all = json::array();
  for (const bench::TunedLength& one : lengths) {
    all.push_back({{"method", one.drafter},
                   {"num_speculative_tokens", one.num_draft_tokens},
                   {"batch_size", one.batch_size},
                   {"tokens_per_second", one.tokens_per_second},
                   {"mean_output_len", one.mean_output_len},
                   {"speed_up", one.ratio},
                   {"low", one.low},
                   {"high", one.high},
                   {"ratios", one.ratios},
                   {"mean_acceptance_length", one.mean_acceptance_length},
                   {"acceptance_by_position", one.acceptance_by_position}});
  }
  return all;
}

json ranges_json(const std::vector<bench::TunedRange>& ranges) {
  json all = json::array();
  for (const bench::TunedRange& one : ranges) {
    all.push_back({one.first, one.last, one.num_draft_tokens});
  }
  return all;
}

Status write_results(const TuneOptions& options, const Tuning& tuning) {
  const std::string config = tuning.entry.is_null()
                                 ? "# No drafter was faster than none on these prompts.\n"
                                 : "speculative-config: '" + tuning.entry.dump() + "'\n";
  FT_RETURN_IF_ERROR(write_bench_text(config, options.output, "--output"));
  if (!options.plot.empty()) {
    FT_RETURN_IF_ERROR(write_bench_text(
        bench::tuning_svg(tuning.lengths, "Drafters of " + options.engine.config.model),
        options.plot, "--plot"));
  }
  if (options.output_json.empty()) return {};
  return write_bench_json({{"speculative_config", tuning.entry},
                           {"num_outputs", tuning.num_outputs},
                           {"num_differing_outputs", tuning.num_differing},
                           {"lengths", lengths_json(tuning.lengths)},
                           {"checks", lengths_json(tuning.checks)},
                           {"by_batch_size", ranges_json(tuning.by_batch)},
                           {"by_batch_size_checks", lengths_json(tuning.by_batch_checks)}},
                          options.output_json);
}

void print_results(const TuneOptions& options, const Tuning& tuning) {
  std::string text = bench::tuning_table(tuning.lengths);
  if (!tuning.checks.empty()) {
    text += "\nThe best one with adaptive lengths:\n" + bench::tuning_table(tuning.checks);
    text += "\nWith those of each batch size, " + ranges_json(tuning.by_batch).dump() + ":\n" +
            bench::tuning_table(tuning.by_batch_checks);
  }
  if (tuning.num_differing > 0) {
    text += fmt::format("{} of {} outputs differ from those without drafts\n", tuning.num_differing,
                        tuning.num_outputs);
  }
  if (tuning.entry.is_null()) {
    text += "\nNo drafter is faster than none on these prompts: leave --speculative-config out.\n";
  } else {
    text += fmt::format(
        "\n{0} has it for `foretoken serve --config {0}`:\n--speculative-config '{1}'\n",
        options.output, tuning.entry.dump());
  }
  std::fputs(text.c_str(), stdout);
}

int tune(const TuneOptions& options) {
  catch_interrupts();
  const Result<Tuning> tuning = measure(options);
  if (!tuning.ok()) return bench_exit_code(tuning.status());
  print_results(options, tuning.value());
  return bench_exit_code(write_results(options, tuning.value()));
}

void add_measuring_flags(CLI::App* command, TuneOptions& options) {
  command
      ->add_option(
          "--prompts", options.prompts,
          "File of prompts: JSON lines with \"prompt\" or \"messages\", or a .txt with one "
          "in each line (default: the bundled ones)")
      ->type_name(kFileType);
  command->add_option("--num-prompts", options.num_prompts, "Prompts; a shorter file is repeated")
      ->capture_default_str()
      ->check(at_least(1));
  command
      ->add_option("--output-len", options.output_len,
                   "Tokens of an output (default: as the file says, else 128)")
      ->check(at_least(1));
  command->add_option("--lengths", options.lengths, "Numbers of drafts to try, with commas between")
      ->delimiter(',')
      ->capture_default_str()
      ->check(within(1, kMaxSpeculativeTokens));
  command->add_option("--batch-sizes", options.batch_sizes, "Requests at once, with commas between")
      ->delimiter(',')
      ->capture_default_str()
      ->check(at_least(1));
  command->add_option("--minutes", options.minutes, "Time for all of it, about")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 1e4));
  command->add_option("--temperature", options.temperature, "0: always the likeliest token")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100.0));
}

}  // namespace

void add_tune_command(CLI::App& app, std::function<int()>* run) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* command = app.add_subcommand(
      "tune", "Measure drafters and lengths on your prompts and write the best configuration");
  add_measuring_flags(command, *options);
  command
      ->add_option("--drafter", options->drafters,
                   "One more drafter to measure: its folder or Hub id, or a JSON object as in "
                   "--speculative-config; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--output", options->output, "File for the configuration, YAML")
      ->capture_default_str()
      ->type_name(kFileType)
      ->check(file_in_a_folder());
  command->add_option("--plot", options->plot, "File for a picture of all speeds, SVG")
      ->type_name(kFileType)
      ->check(file_in_a_folder());
  add_output_json(*command, options->output_json);
  options->engine.log_level = "warning";
  options->engine.add_to(*command);
  command->callback([options, run] { *run = [options] { return tune(*options); }; });
}

}  // namespace foretoken
