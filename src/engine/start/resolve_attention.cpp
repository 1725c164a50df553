#include "engine/start/resolve_attention.h"

#include <algorithm>
#include <string>

#include "attention/backend.h"
#include "base/log.h"

namespace foretoken {
namespace {

AttentionDemand demand_of(const EngineConfig& config, const ModelConfig& model) {
  // A window that no sequence outgrows is none.
  const bool has_full_layers =
      std::any_of(model.layers.begin(), model.layers.end(), [&](const LayerConfig& layer) {
        return layer.window == 0 ||
               (config.max_model_len > 0 && layer.window >= config.max_model_len);
      });
  return {model.dtype, model.head_dim, model.attention_softcap, has_full_layers};
}

// A backend whose bits depend on the batch, or null.
const AttentionBackend* find_faster(const Device& device, const AttentionDemand& demand) {
  for (const AttentionBackend* backend : attention_backends()) {
    if (backend->traits().batch_invariant) continue;
    if (backend->runs_on(device) && backend->serves(demand)) return backend;
  }
  return nullptr;
}

// Whether a backend that was asked for by name may be used.
Status check_named(const AttentionBackend& backend, const EngineConfig& config,
                   const AttentionDemand& demand) {
  const AttentionTraits& traits = backend.traits();
  const std::string flag = "--attention-backend " + std::string(traits.name);
  if (!traits.batch_invariant && config.batch_invariant == "on") {
    return invalid_argument(flag + " is not batch-invariant; give --batch-invariant off with it, " +
                            "or --attention-backend portable");
  }
  if (!backend.serves(demand)) {
    return invalid_argument(flag + " takes " + traits.model_needs +
                            ", which this model does not have; use --attention-backend portable");
  }
  return {};
}

Result<const AttentionBackend*> choose(const EngineConfig& config, const Device& device,
                                       const AttentionDemand& demand) {
  const std::string name = config.attention_backend.empty() ? "auto" : config.attention_backend;
  FT_ASSIGN_OR_RETURN(const AttentionBackend* found, find_attention_backend(name, device));
  const bool is_named = is_attention_backend(*found, name);
  if (is_named) FT_RETURN_IF_ERROR(check_named(*found, config, demand));
  if (is_named || config.batch_invariant != "off") return found;
  const AttentionBackend* faster = find_faster(device, demand);
  return faster != nullptr ? faster : found;
}

}  // namespace

Status resolve_attention(EngineConfig& config, const Device& device, const ModelConfig& model) {
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
  config.attention_backend = traits.name;
  config.batch_invariant = traits.batch_invariant ? "on" : "off";
  return {};
}

}  // namespace foretoken
