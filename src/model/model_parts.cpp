#include "model/model_parts.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "model/layer/layer_spec.h"
#include "model/weights/sharding.h"
#include "model/weights/stages.h"

namespace foretoken {
namespace {

bool any_layer(const ModelConfig& config, auto is_so) {
  return std::any_of(config.layers.begin(), config.layers.end(), is_so);
}

LayerNeeds needs_of_model(const ModelConfig& config) {
  LayerNeeds needs;
  const int32_t most = max_stages(config);
  if (most < static_cast<int32_t>(config.layers.size())) needs.max_stages = most;
  return needs;
}

// Positions of a key that an indexer compares.
int positions_of_keys(const ModelConfig& config) {
  for (const LayerConfig& layer : config.layers) {
    if (layer.chooses) return layer.compress;
  }
  return config.latent.index.pool;
}

// Whether any layer attends to positions. Of an architecture that is not known it is.
bool attends(const ModelConfig& config) {
  const Architecture* architecture = find_architecture(config.architecture);
  if (architecture == nullptr) return true;
  const std::vector<LayerSpec> layers = compose_layers(config, architecture->decoder);
  return std::ranges::any_of(layers, [](const LayerSpec& layer) {
    return std::holds_alternative<GqaSpec>(layer.mixer) ||
           std::holds_alternative<LatentSpec>(layer.mixer) ||
           std::holds_alternative<CompressedSpec>(layer.mixer);
  });
}

// Of MTP modules with a layer of their own, whether it has a window.
Fact sight_of_modules(const ModelConfig& config) {
  const Architecture* architecture = find_architecture(config.architecture);
  if (architecture == nullptr || architecture->mtp.layer == nullptr) return {};
  return architecture->mtp.windowed;
}

}  // namespace

AttentionDemand demand_of(const ModelConfig& config, int max_model_len, int block_size) {
  // A window that no sequence outgrows is none.
  const bool has_full_layers = any_layer(config, [&](const LayerConfig& layer) {
    return layer.window == 0 || (max_model_len > 0 && layer.window >= max_model_len);
  });
  const bool latent = config.latent.exists();
  return {.dtype = config.dtype,
          .head_dim = latent ? config.latent.entry_dim() : config.head_dim,
          .softcap = config.attention_softcap,
          .has_full_layers = has_full_layers,
          .value_dim = latent ? config.latent.kv_rank : 0,
          .has_slopes = !config.alibi_slopes.empty() || config.distance_buckets > 0,
          .block_size = block_size,
          .is_sparse = config.is_sparse()};
}

void add_model(const ModelConfig& config, int max_model_len, int block_size, Combination* c) {
  c->architecture = config.architecture;
  c->dtype = config.dtype;
  c->model = demand_of(config, max_model_len, block_size);
  c->latent = config.latent.exists();
  c->compressed = config.compressed.exists();
  c->positions_each = positions_of_keys(config);
  c->chooses_blocks = config.block_index.exists();
  if (config.block_index.exists()) c->chosen_positions = config.block_index.block;
  c->layers = needs_of_model(config);
  c->has_windows = config.attention_chunk > 0 ||
                   any_layer(config, [](const LayerConfig& layer) { return layer.window > 0; });
  c->bidirectional = config.bidirectional;
  c->attends = attends(config);
  c->keeps_states = keeps_states(config);
  c->modules_windowed = sight_of_modules(config);
  c->kv_heads = kv_heads_of(config);
  c->num_heads = config.num_heads;
  c->hidden_size = config.hidden_size;
  c->num_experts = config.experts.count;
  c->own_ids = config.own_ids();
  c->logits_are_plain = config.logits_softcap == 0 && !config.head_bias && !config.normed_head;
}

Status check_division(const ModelConfig& config, const LoadOptions& options) {
  const Sharding& sharding = options.sharding;
  Combination c = {.num_ranks = sharding.size * options.stages.count,
                   .num_stages = options.stages.count,
                   .num_engines = sharding.experts.num_engines,
                   .num_context_ranks = sharding.context.size,
                   .expert_parallel = sharding.deals_experts(),
                   .two_lanes = options.second_lane != nullptr};
  add_model(config, options.max_model_len, 0, &c);
  // A draft model has none beside a target that has some.
  c.num_experts.reset();
  return compat(c);
}

}  // namespace foretoken
