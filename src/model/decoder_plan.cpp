#include "model/decoder_plan.h"

namespace foretoken {
namespace {

LayerRope rope_of(const LayerConfig& layer, const ModelConfig& config) {
  if (!layer.rope) return LayerRope::kNone;
  return layer.window > 0 && config.rope.windowed ? LayerRope::kWindowed : LayerRope::kFull;
}

}  // namespace

DecoderPlan plan_decoder(const ModelConfig& config, int32_t max_model_len, bool one_kv_group) {
  KvGroupSpec full{0, config.num_kv_heads, config.head_dim, config.dtype, 0};
  KvGroupSpec windowed = full;
  DecoderPlan plan;
  for (const LayerConfig& layer : config.layers) {
    LayerPlan out;
    out.window = layer.window < max_model_len ? layer.window : 0;
    out.rope = rope_of(layer, config);
    out.windowed_group = out.window > 0 && !one_kv_group;
    KvGroupSpec& group = out.windowed_group ? windowed : full;
    if (out.windowed_group) group.window = out.window;
    out.group_index = group.num_layers++;
    plan.layers.push_back(out);
  }
  plan.groups = {full};
  if (windowed.num_layers > 0) plan.groups.push_back(windowed);
  return plan;
}

}  // namespace foretoken
