#include <foretoken/version.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/manual/support_tables.h"
#include "apps/options/commands.h"
#include "apps/options/engine_options.h"
#include "apps/options/inspect_head.h"
#include "apps/options/models/default_model.h"
#include "apps/terminal/interrupt.h"
#include "apps/terminal/report.h"
#include "attention/backend.h"
#include "attention/kv_cache.h"
#include "base/check.h"
#include "compat/compat.h"
#include "device/device_traits.h"
#include "draft/registry.h"
#include "engine/start/load_format.h"
#include "engine/start/locate_model.h"
#include "engine/start/resolve_config.h"
#include "engine/support/support_matrix.h"
#include "gguf/model_texts.h"
#include "kernels/devices/open_device.h"
#include "model/config/config.h"
#include "model/config/families.h"
#include "model/config/missing_parts.h"
#include "model/config/text_part.h"
#include "model/decoder_weights.h"
#include "model/files/forms/quantization.h"
#include "model/layer/layer_spec.h"
#include "model/layer_states.h"
#include "model/registry.h"

namespace foretoken {
namespace {

using nlohmann::ordered_json;

struct InspectOptions {
  EngineOptions engine;
  bool json = false;
  bool step_times = false;
  bool config_only = false;
  bool matrix = false;
  bool families = false;
  bool formats = false;
  bool drafters = false;
};

ordered_json inspect_build() {
#ifdef NDEBUG
  const char* type = "release";
#else
  const char* type = "debug";
#endif
  return {{"type", type}, {"compiler", std::string(__VERSION__)}};
}

ordered_json inspect_device(const DeviceTraits& type, const EngineConfig& config) {
  const Result<std::unique_ptr<Device>> device =
      open_device(type.type, config.device_ordinal, config.cpu_threads);
  if (!device.ok()) {
    return {{"device", type.name}, {"available", false}, {"reason", device.status().message()}};
  }
  return {{"device", type.name},
          {"available", true},
          {"name", device.value()->name()},
          {"free_memory_mib", mebibytes(device.value()->free_memory())}};
}

// Every family that is known by name: those that load, then those that do not, and what they need.
ordered_json inspect_families() {
  ordered_json all = {{"loads", ordered_json::array()}, {"does_not_load", ordered_json::array()}};
  for (const Architecture& entry : architectures()) {
    all["loads"].push_back({{"name", entry.name}, {"description", entry.description}});
  }
  for (const WrappedFamily& entry : wrapped_families()) {
    all["loads"].push_back({{"name", entry.architecture}, {"description", entry.description}});
  }
  for (const RefusedFamily& family : refused_families()) {
    all["does_not_load"].push_back({{"name", family.architecture},
                                    {"description", family.description},
                                    {"needs", missing_parts_text(family.lacks)}});
  }
  return all;
}

ordered_json inspect_registries() {
  ordered_json all;
  all["architectures"] = ordered_json::array();
  for (const Architecture& entry : architectures()) {
    all["architectures"].push_back({{"name", entry.name}, {"description", entry.description}});
  }
  all["drafters"] = ordered_json::array();
  for (const DrafterEntry& entry : drafters()) {
    ordered_json fields = ordered_json::array();
    for (const MethodField& field : entry.fields) fields.push_back(field.name);
    all["drafters"].push_back({{"name", entry.name},
                               {"aliases", entry.aliases},
                               {"description", entry.description},
                               {"needs_model", entry.traits.needs_model},
                               {"fields", fields}});
  }
  all["attention_backends"] = ordered_json::array();
  for (const AttentionBackend* backend : attention_backends()) {
    const AttentionTraits& traits = backend->traits();
    ordered_json aliases = ordered_json::array();
    for (const char* alias : traits.aliases) aliases.push_back(alias);
    ordered_json told = {
        {"name", traits.name}, {"aliases", aliases}, {"description", traits.description}};
    for (const DeviceTraits& device : device_types()) {
      told[device.name] = traits.runs_on(device.type);
    }
    told["batch_invariant"] = traits.batch_invariant;
    all["attention_backends"].push_back(std::move(told));
  }
  return all;
}

ordered_json inspect_drafters(const EngineInfo& info) {
  ordered_json all = ordered_json::array();
  for (const DrafterInfo& drafter : info.drafters) {
    all.push_back({{"name", drafter.name},
                   {"num_speculative_tokens", drafter.num_speculative_tokens},
                   {"kv_cache_mib", mebibytes(drafter.kv_cache_bytes)},
                   {"memory_mib", mebibytes(drafter.memory_bytes)}});
  }
  return all;
}

ordered_json inspect_engine(const EngineInfo& info) {
  return {{"device", info.device},
          {"architecture", info.architecture},
          {"dtype", info.dtype},
          {"attention_backend", info.attention_backend},
          {"cudagraph_mode", info.cudagraph_mode},
          {"num_graphs", info.num_graphs},
          {"graph_seconds", info.graph_seconds},
          {"drafter", info.drafter},
          {"drafters", inspect_drafters(info)},
          {"rejection_sample_method", info.rejection_sample_method},
          {"batch_invariant", info.batch_invariant},
          {"num_parameters", info.num_parameters},
          {"vocab_size", info.vocab_size},
          {"max_model_len", info.max_model_len},
          {"max_num_seqs", info.max_num_seqs},
          {"max_num_batched_tokens", info.max_num_batched_tokens},
          {"block_size", info.block_size},
          {"num_blocks", info.num_blocks},
          {"weights_mib", mebibytes(info.weight_bytes)},
          {"kv_cache_mib", mebibytes(info.kv_cache_bytes)},
          {"states_mib", mebibytes(info.state_bytes)},
          {"state_snapshots", info.num_state_snapshots},
          {"state_snapshots_mib", mebibytes(info.state_snapshot_bytes)},
          {"token_pages_mib", mebibytes(info.token_page_bytes)},
          {"block_tables_mib", mebibytes(info.block_table_bytes)},
          {"drafter_mib_beyond_kv_cache_token_pages_block_tables", mebibytes(info.drafter_bytes)},
          {"scratch_mib", mebibytes(info.scratch_bytes)},
          {"load_seconds", info.load_seconds}};
}

// The list of the tensors is read where they may be quantised or halves; a folder may lack its
// weights.
Result<int64_t> count_weights(const EngineConfig& engine, const ModelFiles& files,
                              const ModelConfig& config, const DecoderTraits& traits) {
  const int64_t plain = decoder_weight_bytes(config, traits);
  if (is_dummy(engine.load_format)) return plain;
  if (!files.is_gguf()) {
    FT_ASSIGN_OR_RETURN(const auto json, read_config_json(files));
    const bool may_be_smaller = json.contains("quantization_config") || config.dtype == DType::kF32;
    if (!may_be_smaller) return plain;
  }
  FT_ASSIGN_OR_RETURN(const auto device, open_configured_device(engine));
  const auto stored = stored_weight_bytes(*device, files, config, traits);
  if (stored.ok() || stored.status().code() != StatusCode::kNotFound) return stored;
  if (files.is_gguf()) return stored;
  return plain;
}

// Of a mixture of experts, under vLLM's names; empty for other models.
ordered_json inspect_experts(const ModelConfig& config) {
  const ExpertConfig& experts = config.experts;
  if (experts.count == 0) return ordered_json::object();
  const auto layers = std::count_if(config.layers.begin(), config.layers.end(),
                                    [](const LayerConfig& layer) { return layer.experts; });
  return {{"num_experts", experts.count},
          {"num_experts_per_tok", experts.top_k},
          {"moe_intermediate_size", experts.inner},
          {"shared_expert_intermediate_size", experts.shared_inner},
          {"num_expert_layers", layers}};
}

int64_t kv_bytes_per_token(const ModelConfig& config, const DecoderTraits& traits) {
  int64_t bytes = 0;
  for (const LayerSpec& layer : compose_layers(config, traits)) {
    bytes += kv_bytes_per_block(kv_layout(layer.mixer, config.dtype, KvFormat::kPlain), 1);
  }
  return bytes;
}

// What config.json says, without loading anything else.
Result<ordered_json> inspect_config(const EngineConfig& engine) {
  const ModelFiles files(engine.model);
  FT_ASSIGN_OR_RETURN(const ModelConfig config,
                      read_model_config(files, {engine.dtype, engine.hf_overrides}));
  const Architecture* architecture = find_architecture(config.architecture);
  FT_CHECK(architecture != nullptr);
  FT_ASSIGN_OR_RETURN(const int64_t weight_bytes,
                      count_weights(engine, files, config, architecture->decoder));
  ordered_json sizes = {
      {"architecture", config.architecture},
      {"dtype", config.dtype == DType::kF32 ? "float32" : "bfloat16"},
      {"vocab_size", config.vocab_size},
      {"hidden_size", config.hidden_size},
      {"intermediate_size", config.intermediate_size},
      {"num_layers", config.num_layers},
      {"num_heads", config.num_heads},
      {"num_kv_heads", config.num_kv_heads},
      {"head_dim", config.head_dim},
      {"max_position_embeddings", config.max_position_embeddings},
      {"weights_mib", mebibytes(weight_bytes)},
      {"kv_cache_bytes_per_token", kv_bytes_per_token(config, architecture->decoder)},
      {"tokenizer", has_model_text(files, "tokenizer.json")}};
  if (keeps_states(config))
    sizes["state_mib_per_sequence"] = mebibytes(state_bytes_each(config, 0));
  sizes.update(inspect_experts(config));
  if (const auto parallel = find_parallel_model(files.text())) {
    sizes["drafter"] = parallel->method;
    sizes["mask_token_id"] = parallel->mask_id;
  }
  return sizes;
}

// Of a folder that only a drafter reads; empty for those of models. The folder must lie here.
Result<std::optional<ordered_json>> inspect_drafter_folder(const InspectOptions& options) {
  std::error_code ignored;
  const std::string& folder = options.engine.config.model;
  if (!std::filesystem::is_directory(folder, ignored)) return std::optional<ordered_json>();
  FT_ASSIGN_OR_RETURN(std::optional<ordered_json> head, inspect_head(folder));
  if (!head) return head;
  if (options.step_times) {
    return invalid_argument(folder + " holds " + (*head)["holds"].get<std::string>() +
                            ", which has no step times of its own; give it as --spec-model");
  }
  ordered_json model = {{"name", folder}};
  model.update(*head);
  return std::optional(model);
}

std::string name_of(const InspectOptions& options) {
  const std::string& given = options.engine.config.model;
  return given.empty() ? bundled_model_name() : given;
}

// The part about the model. Aborted when a signal came.
Result<ordered_json> inspect_model(const InspectOptions& options) {
  FT_ASSIGN_OR_RETURN(const std::optional<ordered_json> head, inspect_drafter_folder(options));
  if (head) return *head;
  if (options.config_only) {
    if (options.step_times) {
      return invalid_argument("--step-times measures the model; leave --config-only out");
    }
    FT_ASSIGN_OR_RETURN(EngineConfig config, options.engine.resolve());
    FT_RETURN_IF_ERROR(options.engine.vllm.check(config.model));
    FT_ASSIGN_OR_RETURN(config, locate_model(config));
    ordered_json model = {{"name", name_of(options)}};
    FT_ASSIGN_OR_RETURN(const ordered_json sizes, inspect_config(config));
    model.update(sizes);
    return model;
  }
  // Sizes need no text.
  EngineOptions quiet = options.engine;
  quiet.config.skip_tokenizer_init = true;
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, start_engine(quiet));
  ordered_json model = {{"name", name_of(options)}};
  model.update(inspect_engine(engine->info()));
  if (!options.step_times) return model;
  FT_RETURN_IF_ERROR(
      compat({.wants_step_times = true, .reckons_with_times = !engine->info().step_times.empty()}));
  model["step_times"] = engine->info().step_times;
  return model;
}

std::string value_text(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.2f}", value.get<double>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const ordered_json& item : value) {
    text += (text.empty() ? "" : ", ") + value_text(item);
  }
  return text;
}

// "key: value" lines; a list of objects gives one line for each.
std::string plain_text(const ordered_json& object, const std::string& indent) {
  std::string text;
  for (const auto& [key, value] : object.items()) {
    text += indent + key + ":";
    if (value.is_object()) {
      text += "\n" + plain_text(value, indent + "  ");
    } else if (value.is_array() && !value.empty() && value.front().is_object()) {
      text += "\n";
      for (const ordered_json& item : value) {
        std::string line;
        for (const auto& [name, field] : item.items()) {
          line += (line.empty() ? "" : "; ") + name + " " + value_text(field);
        }
        text += indent + "  " + line + "\n";
      }
    } else {
      const std::string shown = value_text(value);
      text += (shown.find('\n') == std::string::npos ? " " : "\n") + shown + "\n";
    }
  }
  return text;
}

void print(const ordered_json& all, bool as_json) {
  const std::string text = as_json ? all.dump(2) + "\n" : plain_text(all, "");
  std::fputs(text.c_str(), stdout);
}

int inspect(const InspectOptions& options) {
  if (options.matrix) {
    std::fputs(support_matrix().c_str(), stdout);
    return 0;
  }
  if (options.families && options.json) {
    print(inspect_families(), true);
    return 0;
  }
  if (options.families || options.formats || options.drafters) {
    std::string text;
    if (options.families) text += families_table();
    if (options.formats) text += formats_tables();
    if (options.drafters) text += drafters_table();
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  catch_interrupts();
  const EngineConfig& config = options.engine.config;
  ordered_json all = ordered_json::object();
  // What was asked for stands first.
  if (!config.model.empty() || options.config_only || options.step_times) {
    const Result<ordered_json> model = inspect_model(options);
    if (interrupt_flag().load()) return report_interrupt("while loading");
    if (!model.ok()) {
      report_error(model.status().message());
      return kExitError;
    }
    all["model"] = model.value();
  }
  all.update({{"name", "foretoken"}, {"version", kVersion}, {"build", inspect_build()}});
  all["devices"] = ordered_json::array();
  for (const DeviceTraits& type : device_types()) {
    all["devices"].push_back(inspect_device(type, config));
  }
  all.update(inspect_registries());
  print(all, options.json);
  return 0;
}

}  // namespace

void add_inspect_command(CLI::App& app, std::function<int()>* run) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand(
      "inspect",
      "Show the build, the devices and what is supported; with --model the sizes of a "
      "model or of a draft head");
  command->add_flag("--json", options->json, "One JSON object");
  command->add_flag("--step-times", options->step_times,
                    "Also what steps and drafts cost, as the length policy adaptive reckons");
  command->add_flag("--config-only", options->config_only,
                    "Read config.json only, or what a GGUF file says of itself: no weights, no "
                    "tokenizer, no memory taken");
  command->add_flag("--matrix", options->matrix,
                    "What goes together in this build, as tables in Markdown, and nothing else");
  command->add_flag("--families", options->families,
                    "The families of models that load, and those that do not and what they need, "
                    "as a table in Markdown or with --json as an object; nothing else");
  command->add_flag(
      "--formats", options->formats,
      "The formats of model files that are read and written, in Markdown, and nothing else");
  command->add_flag("--drafters", options->drafters,
                    "The drafters of this build, as a table in Markdown, and nothing else");
  options->engine.log_level = "warning";
  options->engine.add_to(*command);
  command->callback([options, run] { *run = [options] { return inspect(*options); }; });
}

}  // namespace foretoken
