#include "apps/options/engine_options.h"

#include <spdlog/fmt/fmt.h>

#include <string_view>

#include "apps/flags/flag_table.h"
#include "apps/options/engine_choices.h"
#include "apps/options/engine_flags.h"
#include "apps/options/models/default_model.h"
#include "apps/options/rank_process.h"
#include "apps/terminal/download_progress_text.h"
#include "apps/terminal/interrupt.h"
#include "apps/terminal/progress_line.h"
#include "apps/terminal/report.h"
#include "attention/flex_choice.h"
#include "base/files/json_object.h"
#include "base/json_log.h"
#include "base/log.h"
#include "compat/compat.h"
#include "engine/measure/step_time_cache.h"
#include "serve/fields/kv_transfer.h"

namespace foretoken {
namespace {

// Two parts of --attention-backend, to whose choice they are added.
void add_flex_flags(CLI::App& app, EngineConfig& config) {
  const auto add = [&](const char* flag, std::string AttentionChoice::* part, const char* help) {
    app.add_option_function<std::string>(
           flag,
           [&config, part](const std::string& text) {
             AttentionChoice choice = read_attention_choice(config.attention_backend);
             choice.*part = text;
             config.attention_backend = choice.text();
           },
           help)
        ->group("Model")
        ->type_name("EXPRESSION");
  };
  add("--flex-mask", &AttentionChoice::mask,
      "Which positions a row sees, of those up to its own (--attention-backend flex): "
      "'kv <= q and q - kv < 128', of q, kv and h, the query head");
  add("--flex-score", &AttentionChoice::score, "What becomes of a score: 'score - 0.1 * (q - kv)'");
}

void add_log_options(CLI::App& app, EngineOptions& options) {
  app.add_option("--log-level", options.log_level, "Least level logged to stderr")
      ->group("Observation")
      ->capture_default_str()
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error"}));
  app.add_option("--log-format", options.log_format, "Lines of the log as text or as JSON objects")
      ->group("Observation")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
}

std::string load_text(int64_t done, int64_t total) {
  return fmt::format("loading weights: {:.0f} of {:.0f} MiB ({} %)", mebibytes(done),
                     mebibytes(total), total > 0 ? 100 * done / total : 100);
}

}  // namespace

void EngineOptions::add_to(CLI::App& app, bool positional_model) {
  // What short runs and measurements show would depend on those before.
  config.keep_acceptance_rates = false;
  for (const EngineField* field : command_line_fields()) {
    const bool is_model = field->form == FieldForm::kModel;
    // --compilation-config says the same.
    if (std::string_view(field->group) == "Graphs") continue;
    add_engine_flag(app, *field, config, is_model && positional_model);
  }
  app.get_option("--attention-backend")->type_name(choices_type(attention_backend_names()));
  add_flex_flags(app, config);
  app.parse_complete_callback([this] { note_engine_options(*this); });
  adapters.add_to(app);
  app.add_option("--kv-transfer-config", kv_transfer_config,
                 "vLLM's connectors that keep KV blocks in host memory, as --kv-offloading-size "
                 "does: {\"kv_connector\": \"OffloadingConnector\", "
                 "\"kv_connector_extra_config\": {\"cpu_bytes_to_use\": 8589934592}}")
      ->group("Memory")
      ->type_name("JSON");
  graphs.add_to(app);
  speculative.add_to(app);
  add_log_options(app, *this);
  vllm.add_to(app, offline);
}

Result<EngineConfig> EngineOptions::resolve() const {
  EngineConfig resolved = config;
  for (const EngineField* field : command_line_fields()) {
    const std::string text = engine_field_text(*field, config);
    if (field->form != FieldForm::kJson || text.empty()) continue;
    FT_RETURN_IF_ERROR(parse_json_object(text, engine_flag(*field)).status());
  }
  FT_RETURN_IF_ERROR(graphs.apply_to(resolved));
  if (offline && resolved.long_prefill_token_threshold == -1) {
    resolved.long_prefill_token_threshold = 0;
  }
  FT_RETURN_IF_ERROR(adapters.apply_to(resolved));
  if (resolved.parallel.distributed_executor_backend == "ray") {
    FT_LOG(warn,
           "--distributed-executor-backend ray has no effect: ranks are this program's own, "
           "and --nnodes, --node-rank and --master-addr tell of other hosts");
    resolved.parallel.distributed_executor_backend.clear();
  }
  if (!asks_for_nothing(kv_transfer_config)) {
    FT_RETURN_IF_ERROR(read_kv_transfer(kv_transfer_config, &resolved));
  }
  resolved.model = resolved.model.empty() ? default_model() : bundled_or_given(resolved.model);
  if (resolved.model.empty()) {
    return not_found("the bundled model models/" + bundled_model_name() +
                     " was not found; name a model folder with --model");
  }
  FT_ASSIGN_OR_RETURN(resolved.speculative, speculative.resolve(resolved.model));
  if (config.step_time_cache.empty()) resolved.step_time_cache = default_step_time_folder();
  if (config.step_time_cache == "off") resolved.step_time_cache.clear();
  // Every engine asks, but some commands start others first.
  FT_RETURN_IF_ERROR(compat({.drafts = !resolved.speculative.empty(),
                             .step_time_table = !resolved.step_time_table.empty()}));
  return resolved;
}

Result<EngineConfig> prepare_engine(const EngineOptions& options) {
  init_logging(options.log_level.c_str());
  if (options.log_format == "json") use_json_logs();
  FT_ASSIGN_OR_RETURN(EngineConfig config, options.resolve());
  FT_RETURN_IF_ERROR(options.vllm.check(config.model));
  options.graphs.warn();
  FT_LOG(info, "loading {}", config.model);
  config.cancel_load = &interrupt_flag();
  return config;
}

Result<std::unique_ptr<Engine>> start_engine(const EngineOptions& options) {
  FT_ASSIGN_OR_RETURN(EngineConfig config, prepare_engine(options));
  ProgressLine progress;
  config.on_load_progress = [&progress](int64_t done, int64_t total) {
    if (progress.due()) progress.show(load_text(done, total));
  };
  DownloadProgressText fetched;
  config.on_download_progress = [&](const std::string& file, int64_t done, int64_t total) {
    fetched.note(file, done, total);
    if (progress.due()) progress.show(fetched.text(config.model));
  };
  std::unique_ptr<Engine> engine;
  FT_RETURN_IF_ERROR(make_engine(config, &engine));
  if (interrupt_flag().load()) return aborted("loading was interrupted");
  progress.clear();
  FT_LOG(info, "{}", engine_banner(engine->info(), config.model));
  return engine;
}

}  // namespace foretoken
