#include "model/layer/recurrent/selective_mixer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/linear/causal_conv.h"
#include "kernels/linear/gated_norm.h"
#include "kernels/linear/selective_scan.h"

namespace foretoken {
namespace {

// exp(A_log) of the rank's channels, or what GGUF files have in its place, turned: channels side by
// side.
Status load_scan_rates(PartLoader& loader, const std::string& base, const SelectiveSpec& whole,
                       const float** out) {
  const std::string negative = base + SelectiveSpec::kNegativeRates, name = base + "A_log";
  const auto channels = static_cast<size_t>(whole.channels);
  const auto states = static_cast<size_t>(whole.d_state);
  std::vector<float> stored(channels * states, 0.5f);
  const bool is_negative = loader.weights().has_optional(negative);
  if (is_negative) {
    FT_ASSIGN_OR_RETURN(stored, loader.weights().numbers(negative));
  } else {
    const int64_t shape[] = {whole.channels, whole.d_state};
    FT_RETURN_IF_ERROR(loader.weights().expect(name, shape));
    if (loader.weights().has_optional(name)) {
      FT_ASSIGN_OR_RETURN(stored, loader.weights().numbers(name));
    }
  }
  if (stored.size() != channels * states) {
    return invalid_argument("tensor '" + negative + "' has " + std::to_string(stored.size()) +
                            " numbers, not " + std::to_string(channels * states) +
                            "; use a file that was written as a whole");
  }
  const ShardRange own = shard_of(whole.channels, loader.sharding());
  const auto first = static_cast<size_t>(own.begin), count = static_cast<size_t>(own.count);
  std::vector<float> rates(count * states);
  for (size_t c = 0; c < count; ++c) {
    for (size_t n = 0; n < states; ++n) {
      const float number = stored[(first + c) * states + n];
      rates[n * count + c] = is_negative ? -number : std::exp(number);
    }
  }
  return loader.upload(rates, "the rates of decays", out);
}

// What each channel has one of.
TensorPart by_channel(const std::string& name, const SelectiveSpec& whole,
                      const Sharding& sharding) {
  const ShardRange own = shard_of(whole.channels, sharding);
  return {name, whole.channels, own.begin, own.count};
}

// Of the first product: x of the rank's channels, then their gates.
std::vector<TensorPart> parts_of_channels(const std::string& name, const SelectiveSpec& whole,
                                          const Sharding& sharding) {
  const int64_t channels = whole.channels;
  if (!sharding.is_cut()) return {{name, 2 * channels}};
  const ShardRange own = shard_of(channels, sharding);
  return {{name, 2 * channels, own.begin, own.count},
          {name, 2 * channels, channels + own.begin, own.count}};
}

}  // namespace

Status SelectiveMixer::load_maps(PartLoader& loader, const std::string& base,
                                 const SelectiveSpec& whole) {
  const ShardRange own = shard_of(whole.channels, loader.sharding());
  const ColumnRange channels{whole.channels, own.begin, own.count};
  TensorPart of_low{base + "x_proj", spec.maps_size(), 0, spec.step_rank};
  TensorPart of_maps{base + "x_proj", spec.maps_size(), spec.step_rank, 2 * spec.d_state};
  TensorPart of_steps = by_channel(base + "dt_proj", whole, loader.sharding());
  of_low.is_exact = of_maps.is_exact = of_steps.is_exact = true;
  FT_RETURN_IF_ERROR(loader.load_columns({of_low}, channels, &low));
  FT_RETURN_IF_ERROR(loader.load_columns({of_maps}, channels, &maps));
  return loader.load_linear({of_steps}, spec.step_rank, true, &steps);
}

Status SelectiveMixer::load_norms(PartLoader& loader, const std::string& base) {
  switch (spec.norms) {
    case SelectiveNorms::kNone:
      return {};
    case SelectiveNorms::kPlain: {
      const auto rank = static_cast<size_t>(spec.step_rank);
      const auto size = static_cast<size_t>(2 * spec.d_state);
      constexpr const char* kWhat = "the weights of norms";
      FT_RETURN_IF_ERROR(loader.upload(std::vector<float>(rank, 1.0f), kWhat, &low_norm));
      return loader.upload(std::vector<float>(size, 1.0f), kWhat, &maps_norm);
    }
    case SelectiveNorms::kWeighted:
      break;
  }
  FT_RETURN_IF_ERROR(
      loader.load_vector({{base + "dt_layernorm.weight", spec.step_rank}}, &low_norm));
  return loader.load_vector(
      {{base + "b_layernorm.weight", spec.d_state}, {base + "c_layernorm.weight", spec.d_state}},
      &maps_norm);
}

Status SelectiveMixer::load(PartLoader& loader, const std::string& layer,
                            const SelectiveSpec& whole) {
  const std::string base = layer + whole.base;
  const Sharding& sharding = loader.sharding();
  const ShardRange own = shard_of(whole.channels, sharding);
  spec = part_of(whole, sharding);
  dtype = loader.config().dtype;
  eps = whole.norm_eps > 0 ? whole.norm_eps : loader.config().rms_norm_eps;
  FT_RETURN_IF_ERROR(loader.load_linear(parts_of_channels(base + "in_proj", whole, sharding),
                                        whole.inputs, whole.bias, &in));
  FT_RETURN_IF_ERROR(loader.load_conv(base + "conv1d", {whole.channels, own.begin, own.count},
                                      whole.conv_width, &conv));
  if (whole.conv_bias) {
    FT_RETURN_IF_ERROR(
        loader.load_vector({by_channel(base + "conv1d.bias", whole, sharding)}, &conv_bias));
  }
  FT_RETURN_IF_ERROR(load_maps(loader, base, whole));
  FT_RETURN_IF_ERROR(load_norms(loader, base));
  FT_RETURN_IF_ERROR(load_scan_rates(loader, base, whole, &rates));
  FT_RETURN_IF_ERROR(loader.load_vector({by_channel(base + "D", whole, sharding)}, &skip));
  return loader.load_summed(base + "out_proj", whole.channels, whole.bias, &out);
}

void SelectiveMixer::Scratch::fit(const SelectiveSpec& part) {
  channels_ = std::max(channels_, part.channels);
  d_state_ = std::max(d_state_, part.d_state);
  step_rank_ = std::max(step_rank_, part.step_rank);
}

Status SelectiveMixer::Scratch::take(const ScratchSource& source) {
  if (channels_ == 0) return {};
  FT_ASSIGN_OR_RETURN(first, source.floats(2 * int64_t{channels_}));
  FT_ASSIGN_OR_RETURN(mixed, source.floats(channels_));
  FT_ASSIGN_OR_RETURN(mixed_act, source.act(channels_));
  FT_ASSIGN_OR_RETURN(low, source.floats(step_rank_));
  FT_ASSIGN_OR_RETURN(low_act, source.act(step_rank_));
  FT_ASSIGN_OR_RETURN(maps, source.floats(2 * int64_t{d_state_}));
  FT_ASSIGN_OR_RETURN(normed, source.floats(2 * int64_t{d_state_}));
  FT_ASSIGN_OR_RETURN(steps, source.floats(channels_));
  FT_ASSIGN_OR_RETURN(left, source.floats(channels_));
  FT_ASSIGN_OR_RETURN(gated, source.act(channels_));
  return {};
}

void SelectiveMixer::convolve(const LayerRows& rows, const LayerState& state,
                              const Scratch& scratch) const {
  causal_conv(rows.queue, {.counts = rows.counts,
                           .x = scratch.first,
                           .x_gate = nullptr,
                           .out_gate = nullptr,
                           .weights = conv,
                           .bias = conv_bias,
                           .positions = rows.positions,
                           .row_slot = rows.row_slot,
                           .history = state.history,
                           .out = scratch.mixed,
                           .stride = 2 * spec.channels,
                           .max_rows = rows.max_rows,
                           .channels = spec.channels,
                           .width = spec.conv_width,
                           .history_rows = state.history_rows,
                           .silu = 1,
                           .out_dtype = DType::kF32});
  cast_rows(rows, {scratch.mixed, DType::kF32, scratch.mixed_act, dtype, spec.channels});
}

// A product that all channels enter.
void SelectiveMixer::multiply_whole(const LayerRows& rows, const void* x, const Linear& linear,
                                    float* y) const {
  multiply(rows, x, linear, {y}, dtype);
  if (rows.ranks != nullptr) sum_over_ranks(rows, y, linear.outputs);
}

// The steps, and keys and queries, which are returned.
const float* SelectiveMixer::make_maps(const LayerRows& rows, const Scratch& scratch) const {
  GatedNormArgs norm{.counts = rows.counts,
                     .x = scratch.low,
                     .gates = nullptr,
                     .weights = low_norm,
                     .out = scratch.low_act,
                     .gate_stride = 0,
                     .max_rows = rows.max_rows,
                     .num_groups = 1,
                     .group_size = spec.step_rank,
                     .own_weights = 0,
                     .gates_first = 0,
                     .gate = NormGate::kNone,
                     .eps = eps,
                     .dtype = dtype};
  multiply_whole(rows, scratch.mixed_act, low, scratch.low);
  gated_norm(rows.queue, norm);
  multiply(rows, scratch.low_act, steps, {scratch.steps}, dtype);
  multiply_whole(rows, scratch.mixed_act, maps, scratch.maps);
  if (maps_norm == nullptr) return scratch.maps;
  norm.x = scratch.maps;
  norm.weights = maps_norm;
  norm.out = scratch.normed;
  norm.num_groups = 2;
  norm.group_size = spec.d_state;
  norm.own_weights = 1;
  norm.dtype = DType::kF32;
  gated_norm(rows.queue, norm);
  return scratch.normed;
}

void SelectiveMixer::attend(const LayerRows& rows, const LayerKv& kv,
                            const Scratch& scratch) const {
  const LayerState& state = kv.state;
  convolve(rows, state, scratch);
  const float* keys = make_maps(rows, scratch);
  selective_scan(rows.queue, {.counts = rows.counts,
                              .x = scratch.mixed,
                              .steps = scratch.steps,
                              .keys = keys,
                              .queries = keys + spec.d_state,
                              .rates = rates,
                              .skip = skip,
                              .positions = rows.positions,
                              .row_slot = rows.row_slot,
                              .slots = state.slots,
                              .states = state.states,
                              .committed = state.committed,
                              .pending = state.pending,
                              .out = scratch.left,
                              .maps_stride = 2 * spec.d_state,
                              .max_rows = rows.max_rows,
                              .channels = spec.channels,
                              .d_state = spec.d_state,
                              .pending_rows = state.pending_rows});
  gated_norm(rows.queue, {.counts = rows.counts,
                          .x = scratch.left,
                          .gates = scratch.first + spec.channels,
                          .weights = nullptr,
                          .out = scratch.gated,
                          .gate_stride = 2 * spec.channels,
                          .max_rows = rows.max_rows,
                          .num_groups = 1,
                          .group_size = spec.channels,
                          .own_weights = 0,
                          .gates_first = 0,
                          .gate = NormGate::kSilu,
                          .eps = eps,
                          .dtype = dtype});
}

}  // namespace foretoken
