#include <chrono>
#include <future>

#include "base/log.h"
#include "compat/combination.h"
#include "device/memory_role_scope.h"
#include "engine/engine_impl.h"
#include "engine/start/load_format.h"
#include "engine/start/logits_rows.h"
#include "engine/start/make_drafters.h"
#include "engine/start/resolve_config.h"
#include "engine/start/speculative_checks.h"
#include "model/config/rope_table.h"
#include "model/heads/dense_modules.h"
#include "model/heads/judge_head.h"
#include "model/heads/token_head.h"
#include "model/registry.h"

// How an engine reads its model, adapters and drafters.

namespace foretoken {
namespace {

Result<std::unique_ptr<Model>> load_weights(Device& device, const ModelFiles& target,
                                            const LoadOptions& options) {
  const MemoryRoleScope scope(device, MemoryRole::kWeights);
  return load_model(device, target, options);
}

}  // namespace

// How this rank loads its part of the model, but for what its attention is.
Result<LoadOptions> EngineImpl::load_options(const ResolvedConfig& config,
                                             const ModelFiles& target) const {
  LoadOptions options;
  options.config = config_options(config);
  options.max_model_len = config.max_model_len;
  options.kv_format = config.kv_format;
  options.kv_block_size = config.block_size;
  FT_ASSIGN_OR_RETURN(const LoadChoice choice,
                      choose_load_format(config.load_format, config.model));
  if (is_reader_of_vllm(config.load_format)) {
    FT_LOG(warn, "--load-format {} has no effect: files are found and read as with auto",
           config.load_format);
  }
  options.load_format = choice.format;
  FT_ASSIGN_OR_RETURN(options.rounding, choose_quantization(config.quantization, target));
  options.round_activations = rounds_activations(config);
  options.static_scales = config.activation_scheme == "static";
  options.dummy_recipe = choice.recipe;
  options.sharding = ranks_.sharding();
  options.stages = ranks_.stages();
  options.max_rows = config.max_num_batched_tokens;
  options.max_logits_rows = logits_tile(config);
  options.progress = config.on_load_progress;
  options.cancelled = config.cancel_load;
  return options;
}

DrafterParts EngineImpl::drafter_parts(Model& model, const LoadOptions& target,
                                       std::vector<std::string> folders) const {
  return {.device = *device_,
          .target = model,
          .tokenizer = texts_.tokenizer(),
          .attention = target.attention,
          .kv_format = target.kv_format,
          .rounding = target.rounding,
          .dummy_recipe = target.dummy_recipe,
          .sharding = target.sharding,
          .folders = std::move(folders),
          .are_absent = !target.stages.is_last()};
}

Status EngineImpl::load_drafters(ResolvedConfig& config, const LoadOptions& target,
                                 std::vector<std::string> folders) {
  const MemoryRoleScope scope(*device_, MemoryRole::kWeights);
  FT_ASSIGN_OR_RETURN(drafters_,
                      make_drafters(config, drafter_parts(*model_, target, std::move(folders))));
  drafter_names_ = drafter_names(config);
  for (size_t i = 0; i < drafters_.size(); ++i) {
    config.speculative[i].num_speculative_tokens = drafters_[i]->traits().max_draft_tokens;
  }
  // A drafter may have brought its number of drafts, which rates and schedules must fit.
  return check_speculative(config);
}

// Before they tell of the model; who watched or may interrupt the start does so no more.
void EngineImpl::note_loading(const ResolvedConfig& config, const LoadOptions& options,
                              const std::vector<std::string>& drafter_folders) {
  sleep_ = std::make_unique<SleepState>();
  sleep_->config = config;
  sleep_->options = options;
  sleep_->options.progress = nullptr;
  sleep_->options.cancelled = nullptr;
  sleep_->drafter_folders = drafter_folders;
  std::vector<std::string> models = drafter_folders;
  models.insert(models.begin(), config.model);
  sleep_->configs = keep_configs(models);
}

Status EngineImpl::load(ResolvedConfig& config, const ModelFiles& target,
                        const std::vector<std::string>& drafter_folders, StartClock& clock) {
  const auto start = std::chrono::steady_clock::now();
  // A large tokenizer takes as long to read as gigabytes of weights.
  std::future<Result<EngineTexts>> texts =
      std::async(std::launch::async, [&] { return EngineTexts::load(config, target); });
  FT_ASSIGN_OR_RETURN(LoadOptions options, load_options(config, target));
  const Sharding second_lane = ranks_.sharding(1);
  if (config.parallel.enable_dbo) options.second_lane = &second_lane;
  FT_ASSIGN_OR_RETURN(options.attention, take_attention(config, target));
  FT_ASSIGN_OR_RETURN(graphs_, resolve_graphs(config, options.attention->traits().in_graphs));
  config.parts.only_pieces = graphs_.mode == GraphMode::kPiecewise;
  FT_RETURN_IF_ERROR(compat(config.parts));
  if (config.enable_sleep_mode) note_loading(config, options, drafter_folders);
  Result<std::unique_ptr<Model>> model = load_weights(*device_, target, options);
  clock.end_phase("weights");
  FT_ASSIGN_OR_RETURN(texts_, texts.get());
  FT_ASSIGN_OR_RETURN(model_, std::move(model));
  const ModelConfig& loaded = model_->config();
  if (!is_dummy(config.load_format)) {
    FT_ASSIGN_OR_RETURN(judge_, JudgeHead::load(target, loaded.hidden_size));
    if (loaded.bidirectional) {
      FT_ASSIGN_OR_RETURN(tokens_, TokenHead::load(target, loaded.hidden_size));
    }
    if (!tokens_) {
      FT_ASSIGN_OR_RETURN(dense_, load_dense_modules(target, loaded.hidden_size));
    }
  }
  const std::string note = long_form_note(
      loaded.rope.full, config.max_model_len > 0 ? config.max_model_len : loaded.max_context);
  if (!note.empty()) FT_LOG(warn, "{}", note);
  FT_RETURN_IF_ERROR(load_adapters(config));
  FT_ASSIGN_OR_RETURN(generation_, load_generation_config(config, target));
  clock.end_phase("tokenizer");
  FT_RETURN_IF_ERROR(load_drafters(config, options, drafter_folders));
  FT_RETURN_IF_ERROR(take_states(config));
  info_.load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fill_info(config, *options.attention);
  clock.end_phase("drafters");
  return {};
}

// Rank 0 has their names and files; the others get what it brings to the device.
Status EngineImpl::load_adapters(const EngineConfig& config) {
  if (!config.enable_lora) return {};
  num_adapter_slots_ = config.max_loras;
  FT_RETURN_IF_ERROR(model_->take_adapter_slots(
      {num_adapter_slots_, config.max_lora_rank, config.lora_modules_to_save}));
  if (!ranks_.is_first()) return {};
  AdapterRegistry::Options options{.max_rank = config.max_lora_rank,
                                   .max_adapters = config.max_cpu_loras,
                                   .for_ranks = !ranks_.is_alone()};
  if (!is_dummy(config.load_format)) options.model = ModelFiles(config.model);
  adapters_ = std::make_unique<AdapterRegistry>(*model_->adapters(), options);
  for (const LoraModule& module : config.lora_modules) {
    FT_RETURN_IF_ERROR(adapters_->load(module, false));
  }
  return {};
}

}  // namespace foretoken
