#include "engine/start/resolve_attention.h"

#include <algorithm>
#include <string>

#include "attention/families.h"
#include "attention/flex_choice.h"
#include "base/log.h"
#include "compat/compat.h"

namespace foretoken {
namespace {

AttentionDemand demand_of(const EngineConfig& config, const ModelConfig& model) {
  // A window that no sequence outgrows is none.
  const bool has_full_layers =
      std::any_of(model.layers.begin(), model.layers.end(), [&](const LayerConfig& layer) {
        return layer.window == 0 ||
               (config.max_model_len > 0 && layer.window >= config.max_model_len);
      });
  const bool latent = model.latent.exists();
  return {.dtype = model.dtype,
          .head_dim = latent ? model.latent.entry_dim() : model.head_dim,
          .softcap = model.attention_softcap,
          .has_full_layers = has_full_layers,
          .value_dim = latent ? model.latent.kv_rank : 0,
          .has_slopes = !model.alibi_slopes.empty(),
          .block_size = config.block_size,
          .is_sparse = model.is_sparse()};
}

// What goes with a backend here.
Combination with_backend(const AttentionBackend& backend, const EngineConfig& config,
                         const Device& device, const AttentionDemand& demand) {
  return {.device = &device_traits(device.type()),
          .opened = &device,
          .attention = &backend,
          .model = &demand,
          .kv_cache_dtype = config.kv_cache_dtype,
          .dtype = demand.dtype,
          .batch_invariant = config.batch_invariant == "on"};
}

Result<const AttentionBackend*> choose(const EngineConfig& config, const Device& device,
                                       const AttentionDemand& demand) {
  const AttentionChoice choice = read_attention_choice(config.attention_backend);
  std::string name = choice.backend.empty() ? "auto" : choice.backend;
  if (choice.has_expressions() && name == "auto") name = flex_attention().traits().name;
  FT_ASSIGN_OR_RETURN(const AttentionBackend* found, find_attention_backend(name, device));
  if (choice.has_expressions()) {
    FT_RETURN_IF_ERROR(compat({.attention = found,
                               .expressions = true,
                               .num_ranks = config.parallel.tensor_parallel_size,
                               .num_context_ranks = config.parallel.decode_context_parallel_size}));
  }
  if (is_attention_backend(*found, name)) {
    FT_RETURN_IF_ERROR(compat(with_backend(*found, config, device, demand)));
    return found;
  }
  const AttentionBackend* best = &default_attention(demand, device.type(), &device);
  if (config.batch_invariant != "off") return best;
  // One whose bits depend on the batch is faster.
  for (const AttentionBackend* backend : attention_backends()) {
    if (backend->traits().batch_invariant || backend->traits().only_by_name) continue;
    if (compat(with_backend(*backend, config, device, demand)).ok()) return backend;
  }
  return best;
}

}  // namespace

Result<AttentionChoice> resolve_attention(const EngineConfig& config, const Device& device,
                                          const ModelConfig& model) {
  const std::string& wish = config.batch_invariant;
  if (wish != "auto" && wish != "on" && wish != "off") {
    return invalid_argument("--batch-invariant '" + wish + "' is unknown; use auto, on or off");
  }
  FT_ASSIGN_OR_RETURN(const AttentionBackend* backend,
                      choose(config, device, demand_of(config, model)));
  const AttentionTraits& traits = backend->traits();
  if (wish == "off" && traits.batch_invariant) {
    FT_LOG(info,
           "--batch-invariant off: all kernels that this build has for the device and the model "
           "are invariant; it stays on");
  }
  AttentionChoice resolved = read_attention_choice(config.attention_backend);
  resolved.backend = traits.name;
  return resolved;
}

Result<bool> wants_whole_prompts(const AttentionChoice& choice, const ModelConfig& model) {
  if (!choice.has_expressions()) return false;
  FT_ASSIGN_OR_RETURN(const FlexProgram program, parse_flex(choice.mask, choice.score));
  if (!program.sees_prompts) return false;
  const bool has_windows = model.attention_chunk > 0 ||
                           std::any_of(model.layers.begin(), model.layers.end(),
                                       [](const LayerConfig& layer) { return layer.window > 0; });
  FT_RETURN_IF_ERROR(compat({.whole_prompts = true, .windowed = has_windows}));
  return true;
}

}  // namespace foretoken
