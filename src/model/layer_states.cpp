#include "model/layer_states.h"

#include <string>

#include "base/check.h"
#include "model/config/architecture.h"

namespace foretoken {
namespace {

Result<LayerState> take_state(Arena& arena, const StateSpec& spec, const StateUse& use) {
  constexpr const char* kWhat = "states of sequences (lower --max-num-seqs)";
  const auto slots = static_cast<size_t>(use.num_slots) + 1;
  const int32_t back = use.rows_to_take_back();
  LayerState state;
  if (spec.conv_channels > 0) {
    state.history_rows = spec.conv_width - 1 + back;
    const auto row = static_cast<size_t>(spec.conv_channels);
    FT_ASSIGN_OR_RETURN(
        state.history,
        arena.take_array<float>(slots * static_cast<size_t>(state.history_rows) * row, kWhat));
  }
  const LinearShape& linear = spec.linear;
  if (linear.value_heads == 0) return state;
  state.pending_rows = back;
  FT_ASSIGN_OR_RETURN(state.states, arena.take_array<float>(
                                        slots * static_cast<size_t>(linear.state_size()), kWhat));
  FT_ASSIGN_OR_RETURN(state.committed, arena.take_array<int32_t>(slots, kWhat));
  const auto updates = static_cast<size_t>(back) * static_cast<size_t>(linear.update_size());
  FT_ASSIGN_OR_RETURN(state.pending, arena.take_array<float>(slots * updates, kWhat));
  return state;
}

void add_parts(const StateSpec& spec, const LayerState& state, std::vector<BlockPart>* parts) {
  const auto add = [&](auto* base, int64_t count) {
    if (base == nullptr) return;
    parts->push_back({reinterpret_cast<std::byte*>(base), count * int64_t{sizeof(*base)}});
  };
  add(state.history, int64_t{state.history_rows} * spec.conv_channels);
  add(state.states, spec.linear.state_size());
  add(state.committed, 1);
  add(state.pending, int64_t{state.pending_rows} * spec.linear.update_size());
}

}  // namespace

int64_t state_bytes_each(const ModelConfig& config, int32_t max_draft_tokens) {
  const Architecture* architecture = find_architecture(config.architecture);
  if (architecture == nullptr) return 0;
  const auto layers = compose_layers(config, architecture->decoder);
  const DecoderPlan plan = plan_decoder(config, layers, {});
  // The null slot's.
  return LayerStates::bytes(plan.layers, {0, max_draft_tokens});
}

int64_t LayerStates::bytes(std::span<const LayerPlan> layers, const StateUse& use) {
  Arena counted(nullptr, MemoryKind::kDevice);
  for (const LayerPlan& layer : layers) FT_CHECK(take_state(counted, layer.state, use).ok());
  return static_cast<int64_t>(counted.bytes_taken());
}

Status LayerStates::take(std::span<const LayerPlan> layers, const StateUse& use) {
  FT_CHECK(layers_.empty() && use.num_slots > 0);
  const int64_t needed = bytes(layers, use);
  const int64_t free = device_.free_memory();
  if (needed > free) {
    return resource_exhausted("the states of " + std::to_string(use.num_slots) +
                              " sequences take " + std::to_string(needed >> 20) +
                              " MiB, but only " + std::to_string(free >> 20) + " MiB of " +
                              device_.name() + " are free; lower --max-num-seqs");
  }
  for (const LayerPlan& layer : layers) {
    FT_ASSIGN_OR_RETURN(const LayerState state, take_state(arena_, layer.state, use));
    layers_.push_back(state);
    add_parts(layer.state, state, &parts_);
  }
  return {};
}

LayerState LayerStates::of(int32_t layer, const SlotState* slots) const {
  if (layers_.empty()) return {};
  LayerState state = layers_[static_cast<size_t>(layer)];
  state.slots = slots;
  return state;
}

}  // namespace foretoken
