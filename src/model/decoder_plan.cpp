#include "model/decoder_plan.h"

#include <algorithm>

namespace foretoken {
namespace {

// What a mixer sees of the rows before, and with how many heads.
struct Sight {
  int32_t window = 0;
  bool rope = false;
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t chunk = 0;
};
Sight sight_of(const GqaSpec& spec) {
  return {spec.window, spec.rope, spec.num_heads, spec.num_kv_heads, spec.chunk};
}
Sight sight_of(const Absent&) { return {}; }

LayerRope rope_of(const Sight& sight, const RopeConfigs& ropes) {
  if (!sight.rope) return LayerRope::kNone;
  return sight.window > 0 && ropes.windowed ? LayerRope::kWindowed : LayerRope::kFull;
}

// Layers of a group have one layout, that of the most heads.
KvGroupSpec widest_layout(const ModelConfig& config, std::span<const LayerSpec> layers,
                          KvFormat format) {
  KvGroupSpec widest{0, 0, config.head_dim, config.dtype, 0, format};
  for (const LayerSpec& layer : layers) {
    const KvGroupSpec own = kv_layout(layer.mixer, config.dtype, format);
    if (own.num_layers == 0) continue;
    widest.num_kv_heads = std::max(widest.num_kv_heads, own.num_kv_heads);
    widest.head_dim = own.head_dim;
  }
  return widest;
}

}  // namespace

DecoderPlan plan_decoder(const ModelConfig& config, std::span<const LayerSpec> layers,
                         const DecoderPlanOptions& options, const Stages& stages) {
  KvGroupSpec full = widest_layout(config, layers, options.format);
  KvGroupSpec windowed = full;
  DecoderPlan plan;
  bool has_full = false, has_windowed = false;
  for (const LayerSpec& layer : layers) {
    const Sight sight = std::visit([](const auto& mixer) { return sight_of(mixer); }, layer.mixer);
    const bool mixes = sight.num_heads > 0;
    LayerPlan out;
    out.num_heads = sight.num_heads;
    out.num_kv_heads = sight.num_kv_heads;
    out.chunk = sight.chunk;
    out.window = sight.window < options.max_model_len ? sight.window : 0;
    out.rope = rope_of(sight, config.rope);
    out.windowed_group = out.window > 0 && !options.one_kv_group;
    KvGroupSpec& group = out.windowed_group ? windowed : full;
    if (out.windowed_group) group.window = out.window;
    if (mixes) (out.windowed_group ? has_windowed : has_full) = true;
    const auto index = static_cast<int32_t>(plan.layers.size());
    if (mixes && stages.owns(index, static_cast<int32_t>(layers.size()))) {
      out.group_index = group.num_layers++;
    }
    plan.layers.push_back(out);
  }
  if (stages.is_cut()) {
    if (has_full) full.num_layers = std::max(full.num_layers, 1);
    if (has_windowed) windowed.num_layers = std::max(windowed.num_layers, 1);
  }
  plan.groups = {full};
  if (windowed.num_layers > 0) plan.groups.push_back(windowed);
  return plan;
}

}  // namespace foretoken
