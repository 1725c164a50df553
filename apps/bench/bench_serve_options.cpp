#include "apps/bench/bench_serve_options.h"

#include <type_traits>

#include "apps/flags/flag_table.h"
#include "apps/options/engine_options.h"
#include "config/sampling_fields.h"

namespace foretoken {
namespace {

constexpr const char* kServer = "Server";
constexpr const char* kPrompts = "Prompts";
constexpr const char* kLoad = "Load";
constexpr const char* kSampling = "Sampling";
constexpr const char* kResults = "Results";
constexpr const char* kIgnored = "Accepted for vLLM's sake";

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const bench::Backend& backend : bench::backends()) names.emplace_back(backend.name);
  return names;
}

void add_server_flags(BenchServeOptions& o, CLI::App& app) {
  app.add_option("--backend", o.backend, "The API that is spoken")
      ->group(kServer)
      ->capture_default_str()
      ->check(CLI::IsMember(backend_names()));
  app.add_option("--base-url", o.base_url, "http[s]://host[:port][/path], in place of the next two")
      ->group(kServer);
  app.add_option("--host", o.host, "Name or address")->group(kServer)->capture_default_str();
  app.add_option("--port", o.port, "Port")
      ->group(kServer)
      ->capture_default_str()
      ->check(CLI::Range(1, 65535));
  app.add_option("--endpoint", o.endpoint, "Path of the requests (default: by the backend)")
      ->group(kServer);
  app.add_option("--header", o.headers, "Further headers; OPENAI_API_KEY makes an Authorization")
      ->group(kServer)
      ->type_name("KEY=VALUE ...");
  app.add_flag("--insecure", o.insecure, "Accept any TLS certificate")->group(kServer);
  app.add_option("--connect-timeout-sec", o.connect_timeout_s, "Longest time to connect")
      ->group(kServer)
      ->capture_default_str()
      ->check(at_least(1));
  app.add_option("--request-timeout-sec", o.request_timeout_s, "Longest time of one request")
      ->group(kServer)
      ->capture_default_str()
      ->check(at_least(1));
  app.add_option("--model", o.model, "Model to ask for (default: the first one of /v1/models)")
      ->group(kServer);
  app.add_option("--served-model-name", o.served_model_name,
                 "Its name in requests, where --model is a folder")
      ->group(kServer);
  app.add_option("--lora-modules", o.lora_modules, "Models that the requests are dealt to")
      ->group(kServer);
  app.add_option("--lora-assignment", o.lora_assignment, "How they are dealt")
      ->group(kServer)
      ->capture_default_str()
      ->check(CLI::IsMember({"random", "round-robin"}));
  app.add_flag("--profile", o.profile, "Start and stop the server's profiler around the run")
      ->group(kServer);
}

// Adds number flags of one group.
class Numbers {
 public:
  Numbers(CLI::App& app, const char* group) : app_(app), group_(group) {}

  template <class T>
  void operator()(const char* name, T& value, const char* help, int64_t low) {
    CLI::Option* option = app_.add_option(name, value, help)->group(group_)->check(at_least(low));
    if constexpr (std::is_same_v<T, int>) option->capture_default_str();
  }

 private:
  CLI::App& app_;
  const char* group_;
};

void add_prompt_lengths(BenchServeOptions& o, CLI::App& app) {
  bench::DatasetSpec& d = o.dataset;
  Numbers add(app, kPrompts);
  add("--input-len", o.input_len, "Sets --random-input-len and --sonnet-input-len", 1);
  add("--output-len", o.output_len, "Sets the output length of every dataset", 1);
  add("--random-input-len", d.random.input_len, "random: tokens of a prompt", 1);
  add("--random-output-len", d.random.output_len, "random: tokens of an output", 1);
  add("--random-prefix-len", d.random.prefix_len, "random: more tokens that all prompts share", 0);
  app.add_option(
         "--random-range-ratio", o.random_range_ratio,
         "random: lengths vary by this share; a number or {\"input\": 0.3, \"output\": 0.5}")
      ->group(kPrompts)
      ->capture_default_str();
  add("--sharegpt-output-len", d.sharegpt_output_len,
      "sharegpt: tokens of an output (default: as the file's answers)", 1);
  add("--custom-output-len", d.custom_output_len,
      "custom, prompts: tokens of an output; -1: each entry must have \"output_tokens\" (default: "
      "these, else 256)",
      -1);
  add("--spec-bench-output-len", d.spec_bench_output_len, "spec_bench: tokens of an output", 1);
  app.add_option("--spec-bench-category", d.spec_bench_category, "spec_bench: only this category")
      ->group(kPrompts);
  add("--sonnet-input-len", d.sonnet.input_len, "sonnet: tokens of a prompt, about", 1);
  add("--sonnet-output-len", d.sonnet.output_len, "sonnet: tokens of an output", 1);
  add("--sonnet-prefix-len", d.sonnet.prefix_len, "sonnet: tokens that all prompts share, about",
      0);
  add("--prefix-repetition-prefix-len", d.prefix.prefix_len, "prefix_repetition: shared tokens", 0);
  add("--prefix-repetition-suffix-len", d.prefix.suffix_len, "prefix_repetition: own tokens", 1);
  add("--prefix-repetition-num-prefixes", d.prefix.num_prefixes, "prefix_repetition: prefixes", 1);
  add("--prefix-repetition-output-len", d.prefix.output_len,
      "prefix_repetition: tokens of an output", 1);
}

void add_prompt_flags(BenchServeOptions& o, CLI::App& app) {
  bench::DatasetSpec& d = o.dataset;
  app.add_option("--dataset-name", d.name,
                 "random, prefix_repetition; from files: sharegpt, custom (JSON lines), sonnet "
                 "(text), spec_bench; prompts (bundled)")
      ->group(kPrompts)
      ->capture_default_str()
      ->check(CLI::IsMember(bench::dataset_names()));
  app.add_option("--dataset-path", d.path, "File of the prompts")
      ->group(kPrompts)
      ->type_name(kFileType);
  Numbers add(app, kPrompts);
  add("--num-prompts", d.num_prompts, "Prompts; a shorter file is repeated", 1);
  app.add_option("--seed", d.seed, "Of prompts, arrival times and model choices")
      ->group(kPrompts)
      ->capture_default_str()
      ->check(seed_number());
  app.add_option("--tokenizer", o.tokenizer,
                 "Folder or Hub id whose tokenizer makes and counts prompts (default: the model, "
                 "where it is a folder here)")
      ->group(kPrompts);
  app.add_flag("--skip-tokenizer-init", o.skip_tokenizer_init,
               "No tokenizer: random prompts are token ids")
      ->group(kPrompts);
  app.add_flag("--skip-chat-template", d.skip_chat_template,
               "Prompts of files go to /v1/completions as they are")
      ->group(kPrompts);
  app.add_option("--chat-template-kwargs", d.chat_template_kwargs,
                 "JSON object for the tokenizer's chat template")
      ->group(kPrompts);
  app.add_flag("--no-oversample", d.no_oversample, "Do not repeat a short file")->group(kPrompts);
  app.add_flag("--disable-shuffle", d.disable_shuffle, "Keep the order of the file")
      ->group(kPrompts);
  add_prompt_lengths(o, app);
}

void add_load_flags(BenchServeOptions& o, CLI::App& app) {
  app.add_option("--request-rate", o.arrivals.request_rate, "Requests a second; inf: all at once")
      ->group(kLoad)
      ->capture_default_str();
  app.add_option("--burstiness", o.arrivals.burstiness,
                 "1: Poisson arrivals; below: in bursts; above: more even (gamma)")
      ->group(kLoad)
      ->capture_default_str();
  app.add_option("--ramp-up-strategy", o.ramp_up_strategy, "Let the rate grow over the requests")
      ->group(kLoad)
      ->check(CLI::IsMember({"linear", "exponential"}));
  app.add_option("--ramp-up-start-rps", o.arrivals.start_rps, "First rate, requests/s")
      ->group(kLoad);
  app.add_option("--ramp-up-end-rps", o.arrivals.end_rps, "Last rate, requests/s")->group(kLoad);
  Numbers add(app, kLoad);
  add("--max-concurrency", o.max_concurrency, "Requests at one time; the others wait here", 1);
  add("--num-warmups", o.num_warmups, "Requests before, which do not count", 0);
  add("--ready-check-timeout-sec", o.ready_timeout_s,
      "Longest wait for the server to answer a first request; 0: none", 0);
  app.add_option("--probe-request-rate", o.probe_rate,
                 "One-token requests a second beside the others, reported apart")
      ->group(kLoad)
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e4));
  app.add_option("--request-id-prefix", o.request_id_prefix, "Of X-Request-Id (default: by chance)")
      ->group(kLoad);
  app.add_flag("--disable-tqdm", o.quiet, "Show no progress")->group(kLoad);
}

void add_sampling_flags(BenchServeOptions& o, CLI::App& app) {
  for (const SamplingField& field : sampling_fields()) {
    if (!shapes_draws(field)) continue;
    visit_sampling_member(field, SamplingParams(), [&](const auto& is) {
      using Number = std::decay_t<decltype(is)>;
      if constexpr (std::is_arithmetic_v<Number>) {
        using Given = std::conditional_t<std::is_integral_v<Number>, int, double>;
        app.add_option_function<Given>(
               sampling_flag(field),
               [&o, name = field.name](Given value) { o.sampling[name] = value; },
               field.help + std::string(" (default: the server's)"))
            ->group(kSampling);
      }
    });
  }
  Numbers add(app, kSampling);
  add("--logprobs", o.logprobs, "Log-probabilities a token", 0);
  app.add_flag_function(
         "--ignore-eos,!--no-ignore-eos", [&o](int64_t count) { o.ignore_eos = count > 0; },
         "Go on to the full output length (default: with random prompts)")
      ->group(kSampling);
  app.add_option("--extra-body", o.extra_body, "JSON object of more fields for every request")
      ->group(kSampling);
}

void add_result_flags(BenchServeOptions& o, CLI::App& app) {
  app.add_flag("--save-result", o.save_result, "Write the results as JSON")->group(kResults);
  app.add_flag("--save-detailed", o.save_detailed, "With lists of every request and token")
      ->group(kResults);
  app.add_flag("--append-result", o.append_result, "Add a line to the file")->group(kResults);
  app.add_option("--result-dir", o.result_dir, "Folder of the file, made where it is missing")
      ->type_name(kFolderType)
      ->group(kResults);
  app.add_option("--result-filename", o.result_filename,
                 "Its name (default: of label, rate, model and time)")
      ->group(kResults);
  app.add_option("--metadata", o.metadata, "More fields of the JSON")
      ->group(kResults)
      ->type_name("KEY=VALUE ...");
  app.add_option("--label", o.label, "Name of this run (default: the backend)")->group(kResults);
  app.add_option("--percentile-metrics", o.percentile_metrics,
                 "Of ttft, tpot, itl, e2el, client_queue_time, e2el_including_client_queue "
                 "(default: ttft,tpot,itl; embeddings: e2el)")
      ->group(kResults);
  app.add_option("--metric-percentiles", o.metric_percentiles, "Percentiles to tell")
      ->group(kResults)
      ->capture_default_str();
  app.add_option("--goodput", o.goodput,
                 "Bounds in ms for good requests: ttft:200 tpot:20 e2el:5000")
      ->group(kResults)
      ->type_name("KEY:MS ...");
  app.add_flag("--plot-timeline", o.plot_timeline,
               "Draw requests over time, and latency by percentile: two SVG files beside the JSON")
      ->group(kResults);
  app.add_option("--timeline-itl-thresholds", o.itl_thresholds,
                 "Bounds in ms of fast and of middling gaps in the plot")
      ->group(kResults)
      ->capture_default_str();
}

// Without effect here: what they choose does not exist, or is always so.
void add_ignored_flags(CLI::App& app) {
  const auto flag = [&](const char* name, const char* help) {
    app.add_flag_callback(name, [] {}, help)->group(kIgnored);
  };
  flag("--trust-remote-code", "No code of models is ever run");
  flag("--use-beam-search", "Without effect in vLLM too");
  flag("--no-stream", "Files are read whole");
  app.add_option_function<std::string>(
         "--tokenizer-mode", [](const std::string&) {}, "There is one")
      ->group(kIgnored)
      ->check(CLI::IsMember({"auto", "hf", "fast"}));
}

}  // namespace

void BenchServeOptions::add_to(CLI::App& app) {
  add_server_flags(*this, app);
  add_prompt_flags(*this, app);
  add_load_flags(*this, app);
  add_sampling_flags(*this, app);
  add_result_flags(*this, app);
  add_ignored_flags(app);
}

}  // namespace foretoken
