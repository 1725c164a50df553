#include "engine/start/resolve_config.h"

#include <foretoken/limits.h>

#include <algorithm>
#include <climits>
#include <string>

#include "base/log.h"
#include "compat/combination.h"
#include "compat/compat.h"
#include "compat/kv_format.h"
#include "config/engine_fields.h"
#include "device/device_traits.h"
#include "engine/start/make_drafters.h"
#include "engine/start/resolve_attention.h"
#include "engine/start/speculation_rules.h"
#include "engine/start/start_parts.h"
#include "engine/step/shape/graph_mode.h"
#include "kernels/devices/open_device.h"
#include "model/layer/layer_spec.h"
#include "model/layer_states.h"

namespace foretoken {
namespace {

Status check_range(const char* flag, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return invalid_argument(std::string(flag) + " " + std::to_string(value) +
                          " is out of range; use " + std::to_string(low) + " to " +
                          std::to_string(high));
}

Status resolve_lengths(EngineConfig& config, const ModelConfig& model) {
  const int longest = static_cast<int>(model.max_context);
  if (longest < 2) {
    return invalid_argument("the model's config allows a context of " + std::to_string(longest) +
                            " tokens; at least 2 are needed for a prompt and an answer");
  }
  if (config.max_model_len == -1) return {};
  if (config.max_model_len == 0) config.max_model_len = longest;
  if (config.max_model_len > longest) {
    return invalid_argument("--max-model-len " + std::to_string(config.max_model_len) +
                            " exceeds the model's longest context, " + std::to_string(longest) +
                            "; lower it");
  }
  return check_range("--max-model-len", config.max_model_len, 2, longest);
}

// Longer texts of models that see later tokens want --max-num-batched-tokens: a step's scratch
// grows with them.
constexpr int kMaxRowsOfTexts = 8192;

// More rows make prompts faster, and the scratch of a step larger. Where prompts fill their steps
// nobody waits for the end of one, and a device with room of its own takes twice as many.
int rows_by_default(const EngineConfig& config, const Device& device) {
  const DeviceTraits& traits = device_traits(device.type());
  if (device.total_memory() < kLargeMemory) return traits.usual.step_tokens;
  const bool fills = config.long_prefill_token_threshold == 0 && !traits.uses_host_memory;
  return traits.usual.step_tokens_of_large_memory * (fills ? 2 : 1);
}

// Fewer where the states of so many would take more than this, of all ranks together.
int seqs_by_default(const EngineConfig& config, const Device& device, const ModelConfig& model) {
  const EngineSizes& sizes = device_traits(device.type()).usual;
  const int usual = sizes.num_seqs;
  if (!keeps_states(model)) return usual;
  const int64_t each = state_bytes_each(model, max_draft_tokens(config));
  const auto seqs = static_cast<int>(std::clamp<int64_t>(sizes.state_bytes / each - 1, 1, usual));
  if (seqs < usual) {
    FT_LOG(info, "--max-num-seqs {} by default, as each sequence keeps a state of {} MiB", seqs,
           each >> 20);
  }
  return seqs;
}

Status resolve_batch(EngineConfig& config, const Device& device, const ModelConfig& model) {
  if (config.max_num_seqs == 0) config.max_num_seqs = seqs_by_default(config, device, model);
  if (config.max_num_batched_tokens == 0) {
    config.max_num_batched_tokens = rows_by_default(config, device);
    if (model.bidirectional) {  // a text is one step
      const int longest = config.max_model_len > 0 ? config.max_model_len : model.max_context;
      config.max_num_batched_tokens =
          std::max(config.max_num_batched_tokens, std::min(longest, kMaxRowsOfTexts));
    }
  }
  FT_RETURN_IF_ERROR(check_range("--num-gpu-blocks-override", config.num_gpu_blocks_override, 0,
                                 INT32_MAX / config.block_size));
  return {};
}

Status check_adapters(const EngineConfig& config) {
  if (!config.enable_lora) {
    if (config.lora_extra_vocab_size > 0) {
      FT_LOG(warn, "--lora-extra-vocab-size {} has no effect without --enable-lora; add it",
             config.lora_extra_vocab_size);
    }
    return {};
  }
  if (config.lora_extra_vocab_size > 0 && !config.lora_modules_to_save) {
    FT_LOG(warn, "--lora-extra-vocab-size {} has no effect without --lora-modules-to-save; add it",
           config.lora_extra_vocab_size);
  }
  if (config.max_cpu_loras != 0) {
    FT_RETURN_IF_ERROR(
        check_range("--max-cpu-loras", config.max_cpu_loras, config.max_loras, INT_MAX));
  }
  return {};
}

Status resolve_wishes(EngineConfig& config, const ModelConfig& model) {
  if (config.dtype == "half" || config.dtype == "float16") {
    FT_LOG(warn,
           "--dtype {}: there is no arithmetic of float16, the model computes in {}; --dtype "
           "bfloat16 takes the least memory",
           config.dtype, dtype_name(model.dtype));
  }
  const int wanted = config.max_logprobs == -1 ? model.vocab_size
                                               : std::min(config.max_logprobs, model.vocab_size);
  if (wanted > kMaxLogprobs) {
    FT_LOG(warn, "--max-logprobs {}: a request gets at most {} alternatives a token",
           config.max_logprobs, kMaxLogprobs);
  }
  config.max_logprobs = std::min(wanted, kMaxLogprobs);
  return {};
}

}  // namespace

Result<std::unique_ptr<Device>> open_configured_device(const EngineConfig& config) {
  const DeviceTraits* device = find_device_type(config.device);
  if (device != nullptr) {
    return open_device(device->type, config.device_ordinal, config.cpu_threads);
  }
  return invalid_argument("--device '" + config.device + "' is unknown; use " + device_names());
}

ConfigOptions config_options(const EngineConfig& config) {
  return {config.dtype, config.hf_overrides, added_ids_of(config)};
}

Result<ResolvedConfig> resolve_config(const EngineConfig& config, const Device& device,
                                      const ModelConfig& model) {
  FT_RETURN_IF_ERROR(check_engine_fields(config));
  ResolvedConfig resolved;
  static_cast<EngineConfig&>(resolved) = config;
  for (const std::string& change : take_nearest(&resolved)) FT_LOG(warn, "{}", change);
  FT_RETURN_IF_ERROR(resolve_lengths(resolved, model));
  FT_RETURN_IF_ERROR(resolve_batch(resolved, device, model));
  FT_RETURN_IF_ERROR(resolve_wishes(resolved, model));
  FT_RETURN_IF_ERROR(check_adapters(resolved));
  FT_RETURN_IF_ERROR(compat(parts_of(resolved, device, model)));
  FT_ASSIGN_OR_RETURN(resolved.kv_format,
                      choose_kv_format(config.kv_cache_dtype, device.type(), model.dtype));
  if (const std::string note = kv_format_note(config.kv_cache_dtype); !note.empty()) {
    FT_LOG(warn, "--kv-cache-dtype {}: {}", config.kv_cache_dtype, note);
  }
  resolved.kv_cache_dtype = kv_format_name(resolved.kv_format);
  FT_ASSIGN_OR_RETURN(const GraphConfig graphs, resolve_graphs(resolved, true));
  resolved.enforce_eager = graphs.mode == GraphMode::kNone;
  FT_ASSIGN_OR_RETURN(resolved.attention, resolve_attention(resolved, device, model));
  FT_ASSIGN_OR_RETURN(resolved.whole_prompts, wants_whole_prompts(resolved.attention));
  resolved.whole_prompts = resolved.whole_prompts || model.bidirectional;
  resolved.parts = parts_of(resolved, device, model);
  FT_ASSIGN_OR_RETURN(resolved.parts.attention,
                      find_attention_backend(resolved.attention.backend, device));
  FT_RETURN_IF_ERROR(compat(resolved.parts));
  if (resolved.whole_prompts && config.enable_prefix_caching) {
    FT_LOG(info, "a prompt that sees itself has no prefix that others share: no prefix caching");
    resolved.enable_prefix_caching = false;
  }
  if (config.scheduling_policy == "priority") resolved.policy = SchedulingPolicy::kPriority;
  if (!config.speculative.empty()) {
    const SpeculativeConfig& first = config.speculative.front();
    FT_ASSIGN_OR_RETURN(resolved.length_mode, length_mode(first));
    FT_ASSIGN_OR_RETURN(resolved.acceptance, acceptance_method(first));
    const std::string used = acceptance_method_name(resolved.acceptance);
    if (used != first.rejection_sample_method) {
      FT_LOG(warn, "rejection_sample_method {}: {} is used, whose texts are distributed alike",
             first.rejection_sample_method, used);
    }
  }
  return resolved;
}

}  // namespace foretoken
