#include "model/layer/layer_needs.h"

#include <numeric>
#include <variant>

namespace foretoken {
namespace {

void add_needs(const GqaSpec& spec, LayerNeeds* needs) {
  needs->has_slopes |= !spec.slopes.empty();
  needs->norm_all_heads |= spec.qk_norm == QkNorm::kWidth || spec.sub_norm != nullptr;
  needs->mask_by_all_values |= spec.dynamic_mask;
}

void add_needs(const LinearSpec& spec, LayerNeeds* needs) {
  needs->heads_take_turns |= spec.shape.tiled && spec.shape.value_heads != spec.shape.key_heads;
  needs->norm_groups = std::gcd(needs->norm_groups, spec.norm_groups);
}

void add_needs(const SelectiveSpec&, LayerNeeds* needs) { needs->scan_selectively = true; }

void add_needs(const GatedMlpSpec& spec, LayerNeeds* needs) {
  needs->mlp_sees_all |= spec.sparsity > 0 || spec.sub_norm != nullptr;
}

void add_needs(const ExpertsSpec& spec, LayerNeeds* needs) {
  needs->has_idle_experts |= spec.zero_count > 0;
  needs->has_narrow_experts |= spec.latent > 0;
}

// The others are divided as they are.
template <class Spec>
void add_needs(const Spec&, LayerNeeds*) {}

}  // namespace

LayerNeeds needs_of(const ModelConfig& config, const LayerSpec& layer) {
  LayerNeeds needs = {.round_whole_rows = config.rounds_to_int8};
  const auto add = [&](const auto& spec) { add_needs(spec, &needs); };
  std::visit(add, layer.mixer);
  std::visit(add, layer.feed_forward);
  if (layer.side) add(*layer.side);
  if (layer.beside) add(layer.beside->experts);
  if (layer.shortcut) add(*layer.shortcut);
  return needs;
}

}  // namespace foretoken
