#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>

#include "apps/bench/bench_command.h"
#include "apps/bench/bench_run.h"
#include "apps/bench/bench_serve_options.h"
#include "apps/options/models/default_model.h"
#include "apps/terminal/file_text.h"
#include "apps/terminal/interrupt.h"
#include "apps/terminal/progress_line.h"
#include "apps/terminal/report.h"
#include "bench/latency_plot.h"
#include "bench/server_queries.h"
#include "bench/serving_report.h"
#include "bench/serving_table.h"
#include "engine/start/locate_model.h"
#include "gguf/model_texts.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBundledPrompts = "bench/prompts/prompts.jsonl";

// A tokenizer, and what else its folder has.
struct TextTools {
  std::string id;
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;
  bench::TokenCoder coder;
};

// The folder of the tokenizer, or empty for none.
Result<std::string> tokenizer_folder(const BenchServeOptions& options, const std::string& model) {
  if (options.skip_tokenizer_init) return std::string();
  if (options.tokenizer.empty()) {
    const std::string folder = bundled_or_given(model);
    return has_model_text(folder, "tokenizer.json") ? folder : std::string();
  }
  EngineConfig config;
  config.model = bundled_or_given(options.tokenizer);
  // Without weights.
  config.load_format = "dummy";
  config.cancel_load = &interrupt_flag();
  FT_ASSIGN_OR_RETURN(const EngineConfig located, locate_model(config));
  return located.model;
}

Result<std::unique_ptr<TextTools>> load_text_tools(const BenchServeOptions& options,
                                                   const std::string& model) {
  FT_ASSIGN_OR_RETURN(const std::string folder, tokenizer_folder(options, model));
  if (folder.empty()) return std::unique_ptr<TextTools>();
  auto tools = std::make_unique<TextTools>();
  tools->id = options.tokenizer.empty() ? model : options.tokenizer;
  FT_ASSIGN_OR_RETURN(tools->tokenizer, load_hf_tokenizer(folder));
  Result<ChatTemplate> found = ChatTemplate::load(folder);
  if (!found.ok() && found.status().code() != StatusCode::kNotFound) return found.status();
  if (found.ok()) tools->chat_template = std::move(found).value();
  tools->coder = bench::make_token_coder(*tools->tokenizer,
                                         tools->chat_template ? &*tools->chat_template : nullptr);
  return tools;
}

Result<std::vector<bench::Sample>> load_samples(bench::DatasetSpec dataset,
                                                const TextTools* tools) {
  std::string text;
  if (dataset.name == "prompts" && dataset.path.empty()) {
    dataset.path = bundled_path(kBundledPrompts);
  }
  if (bench::reads_file(dataset.name)) {
    if (dataset.path.empty()) {
      return invalid_argument("--dataset-name " + dataset.name +
                              " needs its file: --dataset-path FILE");
    }
    FT_ASSIGN_OR_RETURN(text, read_input_file(dataset.path));
  }
  return bench::make_samples(dataset, text, tools == nullptr ? nullptr : &tools->coder);
}

// A connection for each request of a big run needs more files than shells usually allow.
void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  return fmt::format("{:%Y%m%d-%H%M%S}", parts);
}

// As Python prints a float.
std::string rate_text(double rate) {
  return std::isinf(rate)           ? "inf"
         : rate == std::floor(rate) ? fmt::format("{:.1f}", rate)
                                    : fmt::format("{}", rate);
}

// vLLM's name of the result file.
fs::path result_path(const BenchServeOptions& options, const bench::ReportSettings& settings) {
  std::string name = options.result_filename;
  if (name.empty()) {
    const bench::ArrivalOptions& arrivals = settings.arrivals;
    const std::string rate =
        arrivals.ramp_up == bench::RampUp::kNone
            ? rate_text(arrivals.request_rate) + "qps"
            : fmt::format("ramp-up-{}-{:g}qps-{:g}qps", options.ramp_up_strategy,
                          arrivals.start_rps, arrivals.end_rps);
    const std::string limit =
        settings.max_concurrency ? fmt::format("-concurrency{}", *settings.max_concurrency) : "";
    const std::string model = settings.model_id.substr(settings.model_id.find_last_of('/') + 1);
    name = settings.label.value_or(settings.backend) + "-" + rate + limit + "-" + model + "-" +
           settings.date + ".json";
  }
  return fs::path(options.result_dir) / name;
}

Status write_file(const fs::path& path, const std::string& text, bool append) {
  std::error_code error;
  if (!path.parent_path().empty()) fs::create_directories(path.parent_path(), error);
  std::ofstream file(path, append ? std::ios::app | std::ios::ate : std::ios::out);
  if (append && file.tellp() > 0) file << "\n";
  file << text;
  file.flush();
  if (!file) return invalid_argument("cannot write '" + path.string() + "'");
  std::fputs(("Wrote " + path.string() + "\n").c_str(), stderr);
  return {};
}

bench::ReportSettings make_settings(const BenchServeOptions& options, const BenchServePlan& plan,
                                    const std::string& model, const TextTools* tools) {
  bench::ReportSettings settings;
  settings.date = time_text();
  settings.backend = options.backend;
  settings.pooling = plan.pooling();
  if (!options.label.empty()) settings.label = options.label;
  settings.model_id = model;
  if (tools != nullptr) settings.tokenizer_id = tools->id;
  settings.num_prompts = plan.dataset.num_prompts;
  settings.metadata = plan.metadata;
  settings.arrivals = plan.load.arrivals;
  settings.max_concurrency = options.max_concurrency;
  settings.with_goodput = plan.goodput.wanted();
  settings.percentile_metrics = plan.percentile_metrics;
  settings.interrupted = interrupt_flag().load();
  return settings;
}

// Servers that tell no usage: the tokens of the text.
Status count_outputs(const TextTools* tools, std::vector<bench::RequestRecord>* records) {
  if (tools == nullptr) return {};
  for (bench::RequestRecord& record : *records) {
    if (!record.success || record.counted_by_server || record.text.empty()) continue;
    FT_ASSIGN_OR_RETURN(const auto ids, tools->tokenizer->encode(record.text, false));
    record.output_tokens = static_cast<int64_t>(ids.size());
  }
  return {};
}

Status write_results(const BenchServeOptions& options, const BenchServePlan& plan,
                     const bench::ReportSettings& settings, const bench::LoadResult& load,
                     const bench::ServingMetrics& metrics) {
  fs::path path = result_path(options, settings);
  if (options.save_result || options.append_result) {
    nlohmann::ordered_json result = bench::result_json(settings, load, metrics);
    if (!options.save_detailed) bench::drop_details(&result);
    const std::string text =
        result.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    FT_RETURN_IF_ERROR(write_file(path, text, options.append_result));
  }
  if (!options.plot_timeline) return {};
  const std::string title = settings.model_id + " on " + plan.url.origin() + ", " + settings.date;
  FT_RETURN_IF_ERROR(write_file(path.replace_extension(".timeline.svg"),
                                bench::timeline_svg(load.records, title, plan.itl_thresholds),
                                false));
  return write_file(path.replace_extension().replace_extension(".latency.svg"),
                    bench::latency_svg(load.records, title), false);
}

void add_callbacks(const BenchServeOptions& options, ProgressLine* progress,
                   bench::LoadOptions* load) {
  load->interrupted = [] { return interrupt_flag().load(); };
  load->tell = [](const std::string& line) { std::fputs((line + "\n").c_str(), stderr); };
  if (options.quiet) return;
  load->progress = [progress](size_t num_done, size_t num_all) {
    if (progress->due()) progress->show(fmt::format("{} of {} requests done", num_done, num_all));
  };
}

Status run_serve(const BenchServeOptions& options) {
  FT_ASSIGN_OR_RETURN(BenchServePlan plan, make_plan(options));
  raise_file_limit();
  FT_ASSIGN_OR_RETURN(const auto client, net::Client::create(plan.url, plan.client));
  std::string model = options.model;
  if (model.empty()) {
    FT_ASSIGN_OR_RETURN(model, bench::first_model(*client, plan.load.headers));
  }
  plan.load.models = options.lora_modules;
  if (plan.load.models.empty()) {
    plan.load.models = {options.served_model_name.empty() ? model : options.served_model_name};
  }
  FT_ASSIGN_OR_RETURN(const auto tools, load_text_tools(options, model));
  FT_ASSIGN_OR_RETURN(const auto samples, load_samples(plan.dataset, tools.get()));
  ProgressLine progress;
  add_callbacks(options, &progress, &plan.load);
  FT_ASSIGN_OR_RETURN(bench::LoadResult load, bench::run_load(*client, plan.load, samples));
  progress.clear();
  FT_RETURN_IF_ERROR(count_outputs(tools.get(), &load.records));
  const bench::ServingMetrics metrics =
      bench::serving_metrics(load.records, load.duration, plan.percentiles, plan.goodput);
  const bench::ReportSettings settings = make_settings(options, plan, model, tools.get());
  std::fputs(bench::failure_lines(load.records).c_str(), stderr);
  std::fputs(bench::result_table(settings, load, metrics).c_str(), stdout);
  FT_RETURN_IF_ERROR(write_results(options, plan, settings, load, metrics));
  if (metrics.completed > 0 || settings.interrupted) return {};
  return internal_error("no request succeeded");
}

int serve(const BenchServeOptions& options) {
  catch_interrupts();
  return bench_exit_code(run_serve(options));
}

}  // namespace

void add_bench_serve(CLI::App& bench, std::function<int()>* run) {
  CLI::App* command = bench.add_subcommand(
      "serve", "Latency and throughput of a server with an OpenAI-compatible API");
  auto options = std::make_shared<BenchServeOptions>();
  options->add_to(*command);
  command->callback([options, run] { *run = [options] { return serve(*options); }; });
}

}  // namespace foretoken
