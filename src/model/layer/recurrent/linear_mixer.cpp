#include "model/layer/recurrent/linear_mixer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/linear/causal_conv.h"
#include "kernels/linear/linear_attention.h"
#include "kernels/linear/turn_heads.h"
#include "model/layer/recurrent/linear_parts.h"

namespace foretoken {
namespace {

// exp(A_log) of the rank's heads, or what GGUF files have in its place.
Status load_rates(PartLoader& loader, const std::string& base, const LinearSpec& whole,
                  const float** out) {
  const auto heads = static_cast<size_t>(whole.shape.value_heads);
  std::vector<float> rates(heads, 0.5f);
  if (whole.gates == LinearGates::kFixed) {
    rates = whole.fixed_rates;
    for (const char* name : LinearSpec::kDecayBuffers) loader.weights().ignore(base + name);
  } else {
    const std::string name = base + whole.rates;
    const std::string negative = base + LinearSpec::kNegativeRates;
    if (loader.weights().has_optional(negative)) {
      FT_ASSIGN_OR_RETURN(rates, loader.weights().numbers(negative));
      for (float& rate : rates) rate = -rate;
    } else if (loader.weights().has_optional(name)) {
      FT_ASSIGN_OR_RETURN(rates, loader.weights().numbers(name));
      for (float& rate : rates) rate = std::exp(rate);
    } else if (!loader.weights().has(name)) {
      rates.clear();
    }
    // Published files of Kimi K3 have more, of which the first count.
    const bool is_padded = whole.files == LinearFiles::kEach && whole.shape.channel_decay;
    if (is_padded && rates.size() > heads) rates.resize(heads);
    if (rates.size() != heads) {
      const auto shape = static_cast<int64_t>(heads);
      FT_RETURN_IF_ERROR(loader.weights().expect(name, {&shape, 1}));
    }
  }
  return loader.upload(values_of_rank(rates, whole, loader.sharding()), "the rates of decays", out);
}

Status load_conv(PartLoader& loader, const std::string& base, const LinearSpec& whole,
                 LinearMixer* out) {
  if (whole.conv_width == 0) return {};
  const std::string weights = base + whole.conv + ".weight";
  if (whole.files == LinearFiles::kEach && !loader.weights().has_optional(weights)) {
    const int64_t flat[] = {whole.shape.q_size(), whole.conv_width};
    const bool is_deep = !loader.weights().has_shape(base + "q_conv1d.weight", flat);
    return loader.load_vector(apart_conv_parts(base, whole, loader.sharding(), is_deep),
                              &out->conv);
  }
  const int64_t flat[] = {whole.conv_channels(), whole.conv_width};
  const bool is_flat = loader.weights().has_shape(weights, flat);
  FT_RETURN_IF_ERROR(loader.load_vector(
      conv_parts(weights, whole, loader.sharding(), whole.conv_width, !is_flat), &out->conv));
  if (!whole.conv_bias) return {};
  return loader.load_vector(
      conv_parts(base + whole.conv + ".bias", whole, loader.sharding(), 1, false), &out->conv_bias);
}

// The weights that all groups have in common, for each element of a part.
Status load_shared_weights(PartLoader& loader, const std::string& name, const RowPart& part,
                           const float** out) {
  std::vector<TensorPart> parts;
  for (int32_t g = part.first_group(); g <= part.last_group(); ++g) {
    const int32_t begin = part.begin_of(g);
    parts.push_back({name, part.group, (part.begin + begin) % part.group, part.end_of(g) - begin});
  }
  FT_ASSIGN_OR_RETURN(*out, loader.weights().vector(loader.arena(), parts, 1));
  return {};
}

Status load_norm(PartLoader& loader, const std::string& base, const LinearSpec& whole,
                 const RowPart& cut, const float** out) {
  if (whole.norm_groups == 0) return {};
  const std::string name = base + whole.norm + ".weight";
  const int64_t size = whole.shape.v_size();
  if (!whole.norm_own_weights) {
    if (cut.count > 0) return load_shared_weights(loader, name, cut, out);
    FT_ASSIGN_OR_RETURN(
        *out, loader.weights().vector(loader.arena(), {{{name, size / whole.norm_groups}}}, 1));
    return {};
  }
  const ShardRange own = shard_of(size, loader.sharding());
  TensorPart part{name, size, own.begin, own.count};
  // GGUF files have a row of each group.
  const int64_t by_group[] = {whole.norm_groups, size / whole.norm_groups};
  if (loader.weights().has_shape(name, by_group)) part.row_size = by_group[1];
  FT_ASSIGN_OR_RETURN(*out, loader.weights().vector(loader.arena(), {{part}}, 1));
  return {};
}

Status load_low(PartLoader& loader, const std::string& base, const LinearSpec& whole,
                LinearMixer* out) {
  if (whole.decay_rank + whole.gate_rank == 0) return {};
  std::vector<TensorPart> parts;
  if (whole.decay_rank > 0) parts.push_back({base + whole.low_decay, whole.decay_rank});
  if (whole.gate_rank > 0) parts.push_back({base + whole.low_gate, whole.gate_rank});
  for (TensorPart& part : parts) part.is_exact = true;
  FT_RETURN_IF_ERROR(loader.load_linear(parts, whole.inputs, false, &out->low));
  const LinearShape& shape = whole.shape;
  if (whole.decay_rank > 0) {
    parts = value_parts(base + whole.in_decay, whole, loader.sharding(),
                        shape.decay_size() / shape.value_heads);
    for (TensorPart& part : parts) part.is_exact = true;
    FT_RETURN_IF_ERROR(loader.load_linear(parts, whole.decay_rank, false, &out->low_decays));
  }
  if (whole.gate_rank == 0) return {};
  parts = value_parts(base + whole.in_gate, whole, loader.sharding(), shape.value_dim);
  for (TensorPart& part : parts) part.is_exact = true;
  return loader.load_linear(parts, whole.gate_rank, false, &out->low_gates);
}

// GGUF files of kByGroup have queries, keys and values, and gates, apart.
LinearSpec as_stored(PartLoader& loader, const std::string& base, LinearSpec whole) {
  const bool apart = whole.files == LinearFiles::kByGroup &&
                     loader.weights().has_optional(base + LinearSpec::kApartQkv + ".weight");
  if (apart) {
    whole.files = LinearFiles::kApart;
    whole.in_qkv = LinearSpec::kApartQkv;
  }
  return whole;
}

}  // namespace

Status LinearMixer::load(PartLoader& loader, const std::string& layer, const LinearSpec& whole) {
  const Sharding& sharding = loader.sharding();
  const std::string base = layer + whole.base;
  spec = part_of(whole, sharding);
  dtype = loader.config().dtype;
  eps = whole.norm_eps > 0 ? whole.norm_eps : loader.config().rms_norm_eps;
  FT_RETURN_IF_ERROR(loader.load_linear(first_parts(base, as_stored(loader, base, whole), sharding),
                                        whole.inputs, whole.in_bias, &first));
  const std::vector<TensorPart> of_steps = step_parts(base, whole, sharding);
  if (!of_steps.empty()) {
    FT_RETURN_IF_ERROR(loader.load_linear(of_steps, whole.inputs, whole.in_bias, &steps));
  }
  FT_RETURN_IF_ERROR(load_low(loader, base, whole, this));
  FT_RETURN_IF_ERROR(load_conv(loader, base, whole, this));
  FT_RETURN_IF_ERROR(load_rates(loader, base, whole, &rates));
  if (whole.decay_bias != nullptr) {
    const int64_t each = whole.shape.decay_size() / whole.shape.value_heads;
    FT_RETURN_IF_ERROR(loader.load_vector(
        value_parts(base + whole.decay_bias, whole, sharding, each), &decay_bias));
  }
  if (whole.skip != nullptr) {
    FT_RETURN_IF_ERROR(
        loader.load_vector(value_parts(base + whole.skip, whole, sharding, 1), &skip));
  }
  if (whole.norm_groups % sharding.size != 0) {
    const ShardRange own = shard_of(whole.shape.v_size(), sharding);
    num_cut_groups = whole.norm_groups;
    left_part.part = {0, static_cast<int32_t>(own.count), static_cast<int32_t>(own.begin),
                      whole.shape.v_size() / whole.norm_groups, 0};
  }
  FT_RETURN_IF_ERROR(load_norm(loader, base, whole, left_part.part, &norm));
  left_part.weights = norm;
  const auto load_head_norm = [&](const char* name, const float** to) {
    const std::vector<TensorPart> parts = {
        {base + (name != nullptr ? name : "") + ".weight", whole.shape.key_dim}};
    return name != nullptr ? loader.load_norm_weights(parts, to) : Status();
  };
  FT_RETURN_IF_ERROR(load_head_norm(whole.q_norm, &q_norm));
  FT_RETURN_IF_ERROR(load_head_norm(whole.k_norm, &k_norm));
  TensorPart part{base + whole.out, loader.config().hidden_size};
  part.padded = PaddedHeads::scaled(whole.factors.out, true);
  part.turning = turning_of(whole, 0, whole.shape.value_dim);
  part.turning.of_columns = true;
  return loader.load_summed(part, value_columns(whole, sharding), whole.out_bias, &out);
}

void LinearMixer::Scratch::fit(const LinearSpec& part) {
  first_size_ = std::max(first_size_, part.first_size());
  steps_size_ = std::max(steps_size_, part.steps_size());
  low_size_ = std::max(low_size_, part.decay_rank + part.gate_rank);
  if (part.decay_rank > 0) decay_size_ = std::max(decay_size_, part.shape.decay_size());
  if (part.gate_rank > 0) gate_size_ = std::max(gate_size_, part.shape.v_size());
  if (part.conv_width > 0) conv_size_ = std::max(conv_size_, part.conv_channels());
  row_size_ = std::max(row_size_, part.shape.row_size());
  v_size_ = std::max(v_size_, part.shape.v_size());
}

Status LinearMixer::Scratch::take(const ScratchSource& source) {
  if (row_size_ == 0) return {};
  FT_ASSIGN_OR_RETURN(first, source.floats(first_size_));
  if (steps_size_ > 0) {
    FT_ASSIGN_OR_RETURN(steps, source.floats(steps_size_));
  }
  if (low_size_ > 0) {
    FT_ASSIGN_OR_RETURN(low, source.floats(low_size_));
    FT_ASSIGN_OR_RETURN(low_act, source.act(low_size_));
    FT_ASSIGN_OR_RETURN(decays, source.floats(decay_size_));
    FT_ASSIGN_OR_RETURN(gates, source.floats(gate_size_));
  }
  if (conv_size_ > 0) {
    FT_ASSIGN_OR_RETURN(mixed, source.floats(conv_size_));
  }
  FT_ASSIGN_OR_RETURN(packed, source.floats(row_size_));
  FT_ASSIGN_OR_RETURN(left, source.floats(v_size_));
  FT_ASSIGN_OR_RETURN(normed, source.act(v_size_));
  return {};
}

void LinearMixer::project(const LayerRows& rows, const void* x, const Scratch& scratch) const {
  multiply(rows, x, first, {scratch.first}, dtype);
  if (has_steps()) multiply(rows, x, steps, {scratch.steps}, dtype);
  if (low.outputs > 0) project_low(rows, x, scratch);
}

void LinearMixer::project_low(const LayerRows& rows, const void* x, const Scratch& scratch) const {
  multiply(rows, x, low, {scratch.low}, dtype);
  const auto make = [&](const Linear& linear, int32_t column, float* to) {
    cast_rows(rows, {scratch.low + column, DType::kF32, scratch.low_act, dtype, linear.inputs,
                     low.outputs});
    multiply(rows, scratch.low_act, linear, {to}, dtype);
  };
  if (spec.decay_rank > 0) make(low_decays, 0, scratch.decays);
  if (spec.gate_rank > 0) make(low_gates, spec.decay_rank, scratch.gates);
}

void LinearMixer::convolve(const LayerRows& rows, const LayerState& state,
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
                           .stride = spec.first_size(),
                           .max_rows = rows.max_rows,
                           .channels = spec.conv_channels(),
                           .width = spec.conv_width,
                           .history_rows = state.history_rows,
                           .silu = spec.conv_silu ? 1 : 0,
                           .out_dtype = DType::kF32});
}

void LinearMixer::turn(const LayerRows& rows, const DeviceRope& rope,
                       const Scratch& scratch) const {
  turn_heads(rows.queue, {.counts = rows.counts,
                          .x = scratch.first,
                          .positions = rows.positions,
                          .inv_freq = rope.inv_freq,
                          .q_norm = q_norm,
                          .k_norm = k_norm,
                          .max_rows = rows.max_rows,
                          .stride = spec.first_size(),
                          .num_queries = spec.shape.key_heads,
                          .num_keys = spec.shape.key_heads,
                          .head_dim = spec.shape.key_dim,
                          .rotary_dim = rope.rotary_dim,
                          .scaling = rope.scaling,
                          .eps = eps});
}

void LinearMixer::pack(const LayerRows& rows, const Scratch& scratch) const {
  const LinearShape& shape = spec.shape;
  const float* qkv = spec.conv_width > 0 ? scratch.mixed : scratch.first;
  const bool low_rank = spec.decay_rank > 0;
  const float* decays = low_rank ? scratch.decays : scratch.steps;
  const int32_t scales = spec.decays() && !low_rank ? shape.decay_size() : 0;
  linear_inputs(rows.queue,
                {.counts = rows.counts,
                 .q = qkv,
                 .k = qkv + shape.q_size(),
                 .v = qkv + 2 * shape.q_size(),
                 .decay = spec.decays() ? decays : nullptr,
                 .scale = spec.scales() ? scratch.steps + scales : nullptr,
                 .rates = rates,
                 .decay_bias = decay_bias,
                 .out = scratch.packed,
                 .shape = shape,
                 .stride = spec.conv_width > 0 ? spec.conv_channels() : spec.first_size(),
                 .decay_stride = low_rank ? shape.decay_size() : spec.steps_size(),
                 .scale_stride = spec.steps_size(),
                 .max_rows = rows.max_rows,
                 .gates = spec.gates,
                 .unit = spec.unit ? 1 : 0,
                 .silu = spec.silu ? 1 : 0,
                 .q_scale = spec.q_scale,
                 .min_step = spec.min_step,
                 .max_step = spec.max_step,
                 .scale_factor = spec.scale_factor,
                 .lower_bound = spec.lower_bound});
}

void LinearMixer::attend(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const {
  const LayerState& state = kv.state;
  const LinearShape& shape = spec.shape;
  if (spec.conv_width > 0) convolve(rows, state, scratch);
  if (spec.turns) turn(rows, kv.rope, scratch);
  pack(rows, scratch);
  linear_attention(rows.queue, {.counts = rows.counts,
                                .x = scratch.packed,
                                .skip = skip,
                                .positions = rows.positions,
                                .row_slot = rows.row_slot,
                                .slots = state.slots,
                                .states = state.states,
                                .committed = state.committed,
                                .pending = state.pending,
                                .out = scratch.left,
                                .shape = shape,
                                .max_rows = rows.max_rows,
                                .pending_rows = state.pending_rows});
  gate_left(rows, scratch);
}

// Gates and norms what linear attention has left.
void LinearMixer::gate_left(const LayerRows& rows, const Scratch& scratch) const {
  const LinearShape& shape = spec.shape;
  const int32_t groups = std::max(spec.norm_groups, 1);
  const bool low_rank = spec.gate_rank > 0;
  const float* gates = low_rank ? scratch.gates : scratch.first + spec.conv_channels();
  const GatedNormArgs args{.counts = rows.counts,
                           .x = scratch.left,
                           .gates = spec.gate != NormGate::kNone ? gates : nullptr,
                           .weights = norm,
                           .out = scratch.normed,
                           .gate_stride = low_rank ? shape.v_size() : spec.first_size(),
                           .max_rows = rows.max_rows,
                           .num_groups = groups,
                           .group_size = shape.v_size() / groups,
                           .own_weights = spec.norm_own_weights ? 1 : 0,
                           .gates_first = spec.gates_first ? 1 : 0,
                           .gate = spec.gate,
                           .eps = eps,
                           .dtype = dtype};
  if (num_cut_groups > 0) return norm_left(rows, args, scratch);
  gated_norm(rows.queue, args);
}

// Over groups that ranks have parts of; gates alone stand before it or behind it.
void LinearMixer::norm_left(const LayerRows& rows, GatedNormArgs gating,
                            const Scratch& scratch) const {
  gating.weights = nullptr;
  gating.num_groups = 1;
  gating.group_size = spec.shape.v_size();
  gating.own_weights = gating.gates_first = 0;
  NormedRows of{scratch.left, spec.shape.v_size(), eps, scratch.normed, dtype};
  if (spec.gates_first && spec.gate != NormGate::kNone) {
    gating.out = scratch.left;
    gating.dtype = DType::kF32;
    gated_norm(rows.queue, gating);
    return norm_over_ranks(rows, {&left_part, 1}, of);
  }
  of.out = scratch.left;
  of.dtype = DType::kF32;
  norm_over_ranks(rows, {&left_part, 1}, of);
  gated_norm(rows.queue, gating);
}

}  // namespace foretoken
