#include "model/decoder_plan.h"

#include <algorithm>

namespace foretoken {
namespace {

LayerRope rope_of(const LayerConfig& layer, const ModelConfig& config) {
  if (!layer.rope) return LayerRope::kNone;
  return layer.window > 0 && config.rope.windowed ? LayerRope::kWindowed : LayerRope::kFull;
}

}  // namespace

DecoderPlan plan_decoder(const ModelConfig& config, int32_t max_model_len, bool one_kv_group,
                         const Stages& stages, KvFormat format) {
  KvGroupSpec full{0, config.num_kv_heads, config.head_dim, config.dtype, 0, format};
  KvGroupSpec windowed = full;
  DecoderPlan plan;
  bool has_full = false, has_windowed = false;
  for (const LayerConfig& layer : config.layers) {
    LayerPlan out;
    out.window = layer.window < max_model_len ? layer.window : 0;
    out.rope = rope_of(layer, config);
    out.windowed_group = out.window > 0 && !one_kv_group;
    KvGroupSpec& group = out.windowed_group ? windowed : full;
    if (out.windowed_group) group.window = out.window;
    (out.windowed_group ? has_windowed : has_full) = true;
    const auto index = static_cast<int32_t>(plan.layers.size());
    if (stages.owns(index, static_cast<int32_t>(config.layers.size()))) {
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
