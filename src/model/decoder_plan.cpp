#include "model/decoder_plan.h"

#include <algorithm>

namespace foretoken {
namespace {

// What a mixer sees of the rows before.
struct Sight {
  int32_t window;
  bool rope;
};
Sight sight_of(const MixerSpec& mixer) {
  return std::visit([](const auto& spec) { return Sight{spec.window, spec.rope}; }, mixer);
}

LayerRope rope_of(const Sight& sight, const RopeConfigs& ropes) {
  if (!sight.rope) return LayerRope::kNone;
  return sight.window > 0 && ropes.windowed ? LayerRope::kWindowed : LayerRope::kFull;
}

}  // namespace

DecoderPlan plan_decoder(const ModelConfig& config, std::span<const LayerSpec> layers,
                         const DecoderPlanOptions& options, const Stages& stages) {
  KvGroupSpec full = kv_layout(layers.front().mixer, config.dtype, options.format);
  full.num_layers = 0;
  KvGroupSpec windowed = full;
  DecoderPlan plan;
  bool has_full = false, has_windowed = false;
  for (const LayerSpec& layer : layers) {
    const Sight sight = sight_of(layer.mixer);
    LayerPlan out;
    out.window = sight.window < options.max_model_len ? sight.window : 0;
    out.rope = rope_of(sight, config.rope);
    out.windowed_group = out.window > 0 && !options.one_kv_group;
    KvGroupSpec& group = out.windowed_group ? windowed : full;
    if (out.windowed_group) group.window = out.window;
    (out.windowed_group ? has_windowed : has_full) = true;
    const auto index = static_cast<int32_t>(plan.layers.size());
    if (stages.owns(index, static_cast<int32_t>(layers.size()))) {
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
