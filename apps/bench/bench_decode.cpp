#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/bench/bench_command.h"
#include "apps/bench/bench_dataset.h"
#include "apps/bench/bench_run.h"
#include "apps/bench/pair_stats.h"
#include "apps/options/engine_options.h"
#include "apps/options/engine_variant.h"
#include "apps/terminal/interrupt.h"
#include "apps/terminal/report.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr int kWarmUpTokens = 64;  // of an output, at most
constexpr int kMaxTries = 3;       // of --num-iters runs each, where noise hides what tokens take

struct DecodeOptions {
  EngineOptions engine;
  std::vector<std::string> variants = {"as-given"};
  std::vector<int> batch_sizes = {1, 16, 64, 256};
  std::vector<int> input_lens = {128};
  int short_len = 16;
  int long_len = 272;
  int num_warmup = 1;
  int num_iters = 2;
  double temperature = 0;
  std::string output_json;
};

// An engine, and what the outputs of the current size took.
struct Variant {
  std::string name;
  std::unique_ptr<Engine> engine;
  std::vector<double> short_seconds;
  std::vector<double> long_seconds;
  RequestStats stats;            // of the long outputs
  int64_t num_decode_steps = 0;  // of all sequences, between the first tokens and the last
};

struct Size {
  int input_len = 0;
  int batch = 0;
};

double least(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

// Between the first `short_len` tokens of an output and all of it, so that prompts do not count.
double ms_per_token(const DecodeOptions& options, double short_seconds, double long_seconds) {
  return 1e3 * (long_seconds - short_seconds) / (options.long_len - options.short_len);
}

double best_ms(const DecodeOptions& options, const Variant& variant) {
  return ms_per_token(options, least(variant.short_seconds), least(variant.long_seconds));
}

// Several engines share the device, so each takes no more blocks than the largest batch needs.
int needed_blocks(const DecodeOptions& options, const EngineConfig& config) {
  const int tokens = *std::max_element(options.input_lens.begin(), options.input_lens.end()) +
                     options.long_len + kMaxSpeculativeTokens + 1;
  const int blocks = (tokens + config.block_size - 1) / config.block_size + 1;
  return blocks * *std::max_element(options.batch_sizes.begin(), options.batch_sizes.end()) + 1;
}

Result<std::vector<Variant>> start_variants(const DecodeOptions& options) {
  FT_ASSIGN_OR_RETURN(EngineConfig base, prepare_engine(options.engine));
  if (base.max_num_seqs == 0) {
    base.max_num_seqs = *std::max_element(options.batch_sizes.begin(), options.batch_sizes.end());
  }
  const bool sized = base.num_gpu_blocks_override > 0 || base.kv_cache_memory_bytes > 0;
  if (options.variants.size() > 1 && !sized) {
    base.num_gpu_blocks_override = needed_blocks(options, base);
  }
  FT_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Engine>> engines,
                      start_engines(base, options.variants));
  std::vector<Variant> variants(engines.size());
  for (size_t i = 0; i < engines.size(); ++i) {
    variants[i].name = options.variants[i];
    variants[i].engine = std::move(engines[i]);
  }
  return variants;
}

// What would not run all at once, and so measure something else.
Status check_size(const DecodeOptions& options, const Size& size, const EngineInfo& info) {
  FT_RETURN_IF_ERROR(check_bench_lengths(size.input_len, options.long_len, info));
  FT_RETURN_IF_ERROR(check_bench_batch(size.batch, info));
  const int64_t tokens = int64_t{size.input_len} + options.long_len;
  const int64_t blocks = (tokens + info.block_size - 1) / info.block_size * size.batch;
  if (blocks < info.num_blocks) return {};
  return invalid_argument(
      fmt::format("--batch-size {} with {} tokens each needs {} KV blocks of {}; lower it",
                  size.batch, tokens, blocks, info.num_blocks - 1));
}

std::vector<Request> make_requests(const DecodeOptions& options,
                                   const std::vector<BenchPrompt>& prompts, int output_len) {
  std::vector<Request> requests(prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    requests[i].request_id = "bench-" + std::to_string(i);
    requests[i].prompt_token_ids = prompts[i].ids;
    requests[i].sampling.max_tokens = output_len;
    requests[i].sampling.ignore_eos = true;
    requests[i].sampling.detokenize = false;
    requests[i].sampling.temperature = static_cast<float>(options.temperature);
    requests[i].sampling.seed = i;
  }
  return requests;
}

// A step that was planned before the last output ended may still run: a request of one token ends
// after it, and no step is planned beyond its own.
Status settle(const DecodeOptions& options, Engine& engine, int32_t id) {
  const std::vector<BenchPrompt> prompts = {{.ids = {id}}};
  return run_bench_requests(engine, make_requests(options, prompts, 1), {}).status();
}

Status run_size(const DecodeOptions& options, const std::vector<BenchPrompt>& prompts,
                Variant* variant) {
  const auto seconds = [&](int output_len) -> Result<BenchRun> {
    FT_RETURN_IF_ERROR(settle(options, *variant->engine, prompts.front().ids.front()));
    return run_bench_requests(*variant->engine, make_requests(options, prompts, output_len), {});
  };
  FT_ASSIGN_OR_RETURN(const BenchRun short_run, seconds(options.short_len));
  FT_ASSIGN_OR_RETURN(const BenchRun long_run, seconds(options.long_len));
  variant->short_seconds.push_back(short_run.seconds);
  variant->long_seconds.push_back(long_run.seconds);
  variant->stats += long_run.stats;
  variant->num_decode_steps += long_run.stats.num_steps - short_run.stats.num_steps;
  return {};
}

bool shows_times(const DecodeOptions& options, const std::vector<Variant>& variants) {
  return std::all_of(variants.begin(), variants.end(),
                     [&](const Variant& variant) { return best_ms(options, variant) > 0; });
}

// Every round begins with another variant, so that none always follows the same one. On a machine
// that others use a short output may take as long as a long one: the best of more runs settles it.
Status measure_size(const DecodeOptions& options, const Size& size,
                    std::vector<Variant>* variants) {
  DatasetOptions dataset;
  dataset.name = "random";
  dataset.input_len = size.input_len;
  dataset.output_len = options.long_len;
  dataset.num_prompts = size.batch;
  dataset.seed = options.engine.config.seed;
  FT_ASSIGN_OR_RETURN(const std::vector<BenchPrompt> prompts,
                      load_bench_prompts(*variants->front().engine, dataset));
  const int warm_up_len = std::min(options.long_len, kWarmUpTokens);
  for (Variant& variant : *variants) {
    variant.short_seconds.clear();
    variant.long_seconds.clear();
    variant.stats = {};
    variant.num_decode_steps = 0;
    for (int i = 0; i < options.num_warmup; ++i) {
      const std::vector<Request> requests = make_requests(options, prompts, warm_up_len);
      FT_RETURN_IF_ERROR(run_bench_requests(*variant.engine, requests, {}).status());
    }
  }
  for (int round = 0; round < kMaxTries * options.num_iters; ++round) {
    if (round > 0 && round % options.num_iters == 0 && shows_times(options, *variants)) break;
    for (size_t i = 0; i < variants->size(); ++i) {
      const size_t at = (i + static_cast<size_t>(round)) % variants->size();
      FT_RETURN_IF_ERROR(run_size(options, prompts, &(*variants)[at]));
    }
  }
  return {};
}

// Outputs so short that noise is more than what their tokens took.
Status check_times(const DecodeOptions& options, const Size& size,
                   const std::vector<Variant>& variants) {
  for (const Variant& variant : variants) {
    if (best_ms(options, variant) > 0) continue;
    return invalid_argument(fmt::format(
        "prompt {}, batch {}, {}: in {} runs outputs of --output-len {} took no longer than those "
        "of --short-output-len {}; raise --output-len or --num-iters",
        size.input_len, size.batch, variant.name, variant.long_seconds.size(), options.long_len,
        options.short_len));
  }
  return {};
}

// How much faster `b` is than `a`, round by round; the short times, which differ little, are the
// best of each, so that their noise does not count twice.
json speed_ratio(const DecodeOptions& options, const Variant& a, const Variant& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < a.long_seconds.size(); ++i) {
    ratios.push_back(ms_per_token(options, least(a.short_seconds), a.long_seconds[i]) /
                     ms_per_token(options, least(b.short_seconds), b.long_seconds[i]));
  }
  const MedianInterval found = median_interval(ratios);
  return {{"of", b.name},
          {"over", a.name},
          {"median", found.median},
          {"low", found.low},
          {"high", found.high}};
}

// From one output of a sequence to its next, which holds a step's tokens.
double ms_per_step(const DecodeOptions& options, const Size& size, const Variant& variant) {
  const double tokens = static_cast<double>(options.long_len - options.short_len) * size.batch *
                        static_cast<double>(variant.long_seconds.size());
  return best_ms(options, variant) * tokens / static_cast<double>(variant.num_decode_steps);
}

json size_json(const DecodeOptions& options, const Size& size,
               const std::vector<Variant>& variants) {
  json all = {{"input_len", size.input_len}, {"batch_size", size.batch}};
  all["variants"] = json::array();
  for (const Variant& variant : variants) {
    const double ms = best_ms(options, variant);
    all["variants"].push_back({{"name", variant.name},
                               {"ms_per_token", ms},
                               {"ms_per_step", ms_per_step(options, size, variant)},
                               {"tokens_per_second", 1e3 * size.batch / ms},
                               {"short_seconds", variant.short_seconds},
                               {"long_seconds", variant.long_seconds},
                               {"drafts", drafts_json(variant.stats, variant.engine->info())}});
  }
  all["ratios"] = json::array();
  for (size_t i = 1; i < variants.size(); ++i) {
    all["ratios"].push_back(speed_ratio(options, variants.front(), variants[i]));
  }
  return all;
}

void print_size(const json& all) {
  std::string text;
  for (const json& variant : all["variants"]) {
    text += fmt::format(
        "prompt {}, batch {}, {}: {:.4f} ms per output token of a sequence, {:.1f} tokens/s, mean "
        "acceptance length {:.2f}\n",
        all["input_len"].get<int>(), all["batch_size"].get<int>(),
        variant["name"].get<std::string>(), variant["ms_per_token"].get<double>(),
        variant["tokens_per_second"].get<double>(),
        variant["drafts"]["mean_acceptance_length"].get<double>());
  }
  for (const json& ratio : all["ratios"]) {
    text += fmt::format("  {} over {}: {:.3f} times as fast ({:.3f} to {:.3f})\n",
                        ratio["of"].get<std::string>(), ratio["over"].get<std::string>(),
                        ratio["median"].get<double>(), ratio["low"].get<double>(),
                        ratio["high"].get<double>());
  }
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

json header_json(const DecodeOptions& options, const std::vector<Variant>& variants) {
  json all = {{"short_len", options.short_len}, {"long_len", options.long_len}};
  all["device"] = variants.front().engine->info().device;
  all["dtype"] = variants.front().engine->info().dtype;
  all["load_seconds"] = json::object();
  for (const Variant& variant : variants) {
    all["load_seconds"][variant.name] = variant.engine->info().load_seconds;
  }
  all["sizes"] = json::array();
  all["unmeasured"] = json::array();
  return all;
}

// The size's entry of `all`; the error of one whose times noise hid, which is none of the others'.
Status report_size(const DecodeOptions& options, const Size& size,
                   const std::vector<Variant>& variants, json* all) {
  Status times = check_times(options, size, variants);
  if (times.ok()) {
    (*all)["sizes"].push_back(size_json(options, size, variants));
    print_size((*all)["sizes"].back());
  } else {
    (*all)["unmeasured"].push_back(
        {{"input_len", size.input_len}, {"batch_size", size.batch}, {"reason", times.message()}});
  }
  return times;
}

Status run_decode(const DecodeOptions& options) {
  if (options.short_len >= options.long_len) {
    return invalid_argument(fmt::format("--short-output-len {} must be below --output-len {}",
                                        options.short_len, options.long_len));
  }
  FT_ASSIGN_OR_RETURN(std::vector<Variant> variants, start_variants(options));
  std::vector<Size> sizes;
  for (const int input_len : options.input_lens) {
    for (const int batch : options.batch_sizes) sizes.push_back({input_len, batch});
  }
  for (const Size& size : sizes) {
    for (const Variant& variant : variants) {
      FT_RETURN_IF_ERROR(check_size(options, size, variant.engine->info()));
    }
  }
  json all = header_json(options, variants);
  Status times;
  for (const Size& size : sizes) {
    FT_RETURN_IF_ERROR(measure_size(options, size, &variants));
    const Status found = report_size(options, size, variants, &all);
    if (times.ok()) times = found;
    // After every size, so that an end in between loses no more than one.
    if (!options.output_json.empty()) {
      FT_RETURN_IF_ERROR(write_bench_json(all, options.output_json));
    }
  }
  std::fputs(synthetic_note(variants.back().engine->info()).c_str(), stdout);
  return times;
}

}  // namespace

void add_bench_decode(CLI::App& bench, std::function<int()>* run) {
  CLI::App* command = bench.add_subcommand(
      "decode", "ms per output token at several batch sizes, of one engine or several in turns");
  auto options = std::make_shared<DecodeOptions>();
  const auto add = [&](const char* name, auto& value, const char* help, int64_t low) {
    return command->add_option(name, value, help)->capture_default_str()->check(at_least(low));
  };
  add("--batch-sizes", options->batch_sizes, "Prompts of a batch, all at once", 1)->delimiter(',');
  add("--input-lens", options->input_lens, "Tokens of a prompt", 1)->delimiter(',');
  add("--output-len", options->long_len, "Tokens of an output", 2);
  add("--short-output-len", options->short_len,
      "Its first tokens, whose time is taken off with that of the prompt", 1);
  add("--num-iters-warmup", options->num_warmup, "Runs of a size that do not count", 0);
  add("--num-iters", options->num_iters,
      "Runs of a size that count; the best is shown; up to three times as many where noise hides "
      "it",
      1);
  command
      ->add_option(
          "--variants", options->variants,
          "Engines to measure in turns, the first with the others: off, adaptive, "
          "as-given, fixed or fixed:K, each also with +B: B branches, and @N: N steps in flight")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--temperature", options->temperature, "0: always the likeliest token")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100.0));
  add_output_json(*command, options->output_json);
  // Every run has the same prompts, which a warm cache would skip.
  options->engine.config.enable_prefix_caching = false;
  options->engine.log_level = "warning";
  options->engine.add_to(*command);
  command->callback([options, run] {
    *run = [options] {
      catch_interrupts();
      return bench_exit_code(run_decode(*options));
    };
  });
}

}  // namespace foretoken
