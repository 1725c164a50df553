#include "model/decoder_plan.h"

#include <algorithm>

#include "base/check.h"
#include "compat/kv_format.h"
#include "kernels/rows/see_spans.h"

namespace foretoken {
namespace {

// What a mixer sees of the rows before, and with how many heads.
struct Sight {
  int32_t window = 0;
  bool rope = false;
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t chunk = 0;
  int32_t head_dim = 0;
  int32_t kv_of = -1;
  int32_t value_dim = 0;
  bool chooses = false;
  bool turns_fully = false;  // as layers without a window do, whatever the window is
};
Sight sight_of(const GqaSpec& spec) {
  return {.window = spec.window,
          .rope = spec.rope,
          .num_heads = spec.num_heads,
          .num_kv_heads = spec.num_kv_heads,
          .chunk = spec.chunk,
          .head_dim = spec.head_dim,
          .kv_of = spec.kv_of,
          .chooses = spec.index.exists()};
}
Sight sight_of(const LatentSpec& spec) {
  return {.rope = true,
          .num_heads = spec.num_heads,
          .num_kv_heads = 1,
          .head_dim = spec.entry_dim(),
          .value_dim = spec.kv_rank,
          .chooses = spec.index.exists()};
}
Sight sight_of(const CompressedSpec& spec) {
  return {.window = spec.window,
          .rope = true,
          .num_heads = spec.num_heads,
          .num_kv_heads = 1,
          .head_dim = spec.head_dim,
          .value_dim = spec.head_dim,
          .turns_fully = spec.ratio > 0};
}
Sight sight_of(const ShortConvSpec&) { return {}; }
Sight sight_of(const LinearSpec&) { return {}; }
Sight sight_of(const SelectiveSpec&) { return {}; }
Sight sight_of(const WkvSpec&) { return {}; }
Sight sight_of(const Absent&) { return {}; }

LayerRope rope_of(const Sight& sight, const RopeConfigs& ropes) {
  if (!sight.rope) return LayerRope::kNone;
  return sight.window > 0 && !sight.turns_fully && ropes.windowed ? LayerRope::kWindowed
                                                                  : LayerRope::kFull;
}

int64_t bytes_of(const KvGroupSpec& layout) {
  return layout.num_kv_heads * group_entry_bytes(layout);
}

// Layers of a group have one layout, that of the largest entries, or the front of it.
void widen(const KvGroupSpec& own, KvGroupSpec* group) {
  if (bytes_of(own) <= bytes_of(*group)) return;
  group->num_kv_heads = own.num_kv_heads;
  group->head_dim = own.head_dim;
  group->value_dim = own.value_dim;
  group->rope_dim = own.rope_dim;
}

// Gives the layer its place in the group.
int32_t place_layer(KvGroupSpec own, KvGroupSpec* group) {
  own.format = group->format;
  group->layer_bytes.push_back(bytes_of(own));
  return group->num_layers++;
}

// The largest layer may be another stage's.
KvGroupSpec with_settled_bytes(KvGroupSpec group) {
  const int64_t whole = bytes_of(group);
  const auto is_whole = [&](int64_t bytes) { return bytes == whole; };
  if (std::ranges::all_of(group.layer_bytes, is_whole)) group.layer_bytes.clear();
  return group;
}

// Gives the layer its place among those that keep such rows.
int32_t place_rows(const KvRowsSpec& own, KvRowsSpec* all) {
  FT_CHECK(all->num_layers == 0 || (all->dim == own.dim && all->positions == own.positions));
  all->dim = own.dim;
  all->positions = own.positions;
  all->rope_dim = own.rope_dim;
  return all->num_layers++;
}

// What the layer keeps beside its keys and values, which all positions have, whatever it sees.
void place_beside(const KvGroupSpec& own, KvGroupSpec* full, LayerPlan* out) {
  if (own.index.num_layers > 0) out->index_place = place_rows(own.index, &full->index);
  const KvRowsSpec& compressed = own.compressed[0];
  if (compressed.num_layers == 0) return;
  const KvRowsSpec& first = full->compressed[0];
  const bool is_first = first.num_layers == 0 || first.positions == compressed.positions;
  out->compressed_kind = is_first ? 0 : 1;
  out->compressed_place = place_rows(compressed, &full->compressed[is_first ? 0 : 1]);
}

}  // namespace

DecoderPlan plan_decoder(const ModelConfig& config, std::span<const LayerSpec> layers,
                         const DecoderPlanOptions& options, const Stages& stages) {
  KvGroupSpec full{.head_dim = config.head_dim,
                   .dtype = config.dtype,
                   .format = options.format,
                   .context_size = options.context.size,
                   .context_rank = options.context.rank};
  KvGroupSpec windowed = full;
  DecoderPlan plan;
  bool has_full = false, has_windowed = false;
  for (const LayerSpec& layer : layers) {
    const Sight sight = std::visit([](const auto& mixer) { return sight_of(mixer); }, layer.mixer);
    const bool mixes = sight.num_heads > 0;
    LayerPlan out;
    out.num_heads = sight.num_heads;
    out.num_kv_heads = sight.num_kv_heads;
    out.head_dim = sight.head_dim;
    out.chunk = sight.chunk;
    out.value_dim = sight.value_dim;
    out.chooses = sight.chooses;
    out.window = sight.window < options.max_model_len ? sight.window : 0;
    out.rope = rope_of(sight, config.rope);
    out.windowed_group = out.window > 0 && !options.one_kv_group && !config.bidirectional;
    KvGroupSpec& group = out.windowed_group ? windowed : full;
    if (out.windowed_group) group.window = out.window;
    if (mixes) (out.windowed_group ? has_windowed : has_full) = true;
    const KvGroupSpec own = kv_layout(layer.mixer, config.dtype, options.format);
    if (mixes) widen(own, &group);
    const auto index = static_cast<int32_t>(plan.layers.size());
    const bool owned = stages.owns(index, static_cast<int32_t>(layers.size()));
    if (owned) out.state = state_of(layer);
    if (sight.kv_of >= 0) {
      out.group_index = plan.layers.at(static_cast<size_t>(sight.kv_of)).group_index;
    } else if (mixes && owned) {
      out.group_index = place_layer(own, &group);
      place_beside(own, &full, &out);
    }
    plan.layers.push_back(out);
  }
  if (stages.is_cut()) {
    if (has_full) full.num_layers = std::max(full.num_layers, 1);
    if (has_windowed) windowed.num_layers = std::max(windowed.num_layers, 1);
  }
  plan.groups = {with_settled_bytes(full)};
  if (windowed.num_layers > 0) plan.groups.push_back(with_settled_bytes(windowed));
  return plan;
}

Status SpanSight::take(const ModelConfig& config, const ScratchSource& source, int num_lanes) {
  if (!config.bidirectional) return {};
  lane_offset_ = source.max_rows;
  const auto rows = static_cast<size_t>(num_lanes) * static_cast<size_t>(lane_offset_);
  FT_ASSIGN_OR_RETURN(last_seen_, source.arena.take_array<int32_t>(rows, ScratchSource::kWhat));
  return {};
}

void SpanSight::begin(Queue& queue, const StepTensors& tensors, const ForwardRows& rows) const {
  if (last_seen_ == nullptr) return;
  for (int lane = 0; lane < (rows.in_lanes ? 2 : 1); ++lane) {
    const StepTensors own = rows.in_lanes ? lane_of(tensors, lane, lane_offset_) : tensors;
    see_spans(queue, {own.counts, own.row_slot, own.positions, last_seen(lane), rows.max_rows});
  }
}

}  // namespace foretoken
