#include "model/layer/layer_needs.h"

#include <variant>

namespace foretoken {
namespace {

void add_needs(const GqaSpec& spec, LayerNeeds* needs) {
  needs->has_slopes |= !spec.slopes.empty();
}

// The others are divided as they are.
template <class Spec>
void add_needs(const Spec&, LayerNeeds*) {}

}  // namespace

LayerNeeds needs_of(const LayerSpec& layer) {
  LayerNeeds needs;
  const auto add = [&](const auto& spec) { add_needs(spec, &needs); };
  std::visit(add, layer.mixer);
  std::visit(add, layer.feed_forward);
  if (layer.side) add(*layer.side);
  if (layer.beside) add(layer.beside->experts);
  if (layer.shortcut) add(*layer.shortcut);
  return needs;
}

}  // namespace foretoken
