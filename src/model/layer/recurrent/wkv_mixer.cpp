#include "model/layer/recurrent/wkv_mixer.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <vector>

#include "kernels/gemm/activate.h"
#include "kernels/linear/shift_rows.h"
#include "kernels/linear/wkv.h"
#include "kernels/linear/wkv_inputs.h"
#include "kernels/linear/wkv_output.h"

namespace foretoken {
namespace {

// Places among WkvSpec::kMixes.
enum Mix : int32_t { kQueries, kDecays, kKeys, kValues, kRates, kGates };

Status load_mixes(PartLoader& loader, const std::string& base, const WkvSpec& whole,
                  const float** out) {
  const std::string joined = base + WkvSpec::kJoinedMixes;
  if (loader.weights().has_optional(joined)) {
    const int64_t shape[] = {WkvSpec::kNumMixes, whole.inputs};
    const int64_t deep[] = {WkvSpec::kNumMixes, 1, 1, whole.inputs};
    if (!loader.weights().has_shape(joined, deep)) {
      FT_RETURN_IF_ERROR(loader.weights().expect(joined, shape));
    }
    FT_ASSIGN_OR_RETURN(const std::vector<float> numbers, loader.weights().numbers(joined));
    return loader.upload(numbers, "the mixes of rows", out);
  }
  std::vector<TensorPart> parts;
  for (const char* name : WkvSpec::kMixes) {
    TensorPart& part = parts.emplace_back(TensorPart{base + name, whole.inputs});
    const int64_t deep[] = {1, 1, whole.inputs};
    if (!loader.weights().has_shape(part.name, deep)) continue;
    part.row_size = whole.inputs;
    part.stacked = 1;
  }
  return loader.load_vector(parts, out);
}

// A rank's part of the vector `name`, of which each head has `dim` elements; files may have them as
// rows.
Status load_of_heads(PartLoader& loader, const std::string& name, const WkvSpec& whole,
                     const float** out) {
  const int64_t heads = whole.shape.value_heads, dim = whole.shape.key_dim;
  const ShardRange own = shard_of(heads, loader.sharding());
  TensorPart part{name, heads * dim, own.begin * dim, own.count * dim};
  const int64_t by_head[] = {heads, dim};
  if (loader.weights().has_shape(name, by_head)) part.row_size = dim;
  return loader.load_vector({part}, out);
}

// A rank's rows of a matrix that makes heads.
TensorPart rows_of_heads(const std::string& name, const WkvSpec& whole, const Sharding& sharding) {
  const ShardRange own = shard_of(whole.shape.value_heads, sharding);
  const int64_t dim = whole.shape.value_dim;
  return {name, whole.shape.v_size(), own.begin * dim, own.count * dim};
}

Status load_factors(PartLoader& loader, const std::string& base, const WkvSpec& whole,
                    const WkvSpec::Factors& factors, WkvMixer::Factors* out) {
  const std::string name = base + factors.name;
  TensorPart low{name + ".0", factors.rank};
  TensorPart high = rows_of_heads(name + ".2", whole, loader.sharding());
  low.is_exact = high.is_exact = true;
  FT_RETURN_IF_ERROR(loader.load_linear({low}, whole.inputs, false, &out->low));
  return loader.load_linear({high}, factors.rank, factors.bias, &out->high);
}

}  // namespace

Status WkvMixer::load_vectors(PartLoader& loader, const std::string& base, const WkvSpec& whole) {
  FT_RETURN_IF_ERROR(load_mixes(loader, base, whole, &mixes));
  const float** const to[] = {&key_scale, &rate_scale, &norm, &norm_bias};
  for (size_t i = 0; i < std::size(to); ++i) {
    FT_RETURN_IF_ERROR(load_of_heads(loader, base + WkvSpec::kVectors[i], whole, to[i]));
  }
  return load_of_heads(loader, base + "r_k", whole, &bonus);
}

Status WkvMixer::load(PartLoader& loader, const std::string& layer, const WkvSpec& whole) {
  const Sharding& sharding = loader.sharding();
  const std::string base = layer + whole.base;
  spec = part_of(whole, sharding);
  dtype = loader.config().dtype;
  FT_RETURN_IF_ERROR(load_vectors(loader, base, whole));
  Linear* const products[] = {&queries, &keys, &values};
  for (size_t i = 0; i < std::size(products); ++i) {
    FT_RETURN_IF_ERROR(
        loader.load_linear({rows_of_heads(base + WkvSpec::kProducts[i], whole, sharding)},
                           whole.inputs, false, products[i]));
  }
  Factors* const all[] = {&decays, &rates, &gates, &shares};
  const std::vector<WkvSpec::Factors> named = WkvSpec::factors_of(whole);
  for (size_t i = 0; i < named.size(); ++i) {
    FT_RETURN_IF_ERROR(load_factors(loader, base, whole, named[i], all[i]));
  }
  if (whole.is_first) loader.weights().ignore_all(base + "v_lora.");
  return loader.load_summed(base + "o_proj", whole.shape.v_size(), false, &out);
}

void WkvMixer::Scratch::fit(const WkvSpec& part) {
  inputs_ = std::max(inputs_, part.inputs);
  rank_ = std::max(rank_, part.widest_rank());
  row_size_ = std::max(row_size_, part.shape.row_size());
  v_size_ = std::max(v_size_, part.shape.v_size());
}

Status WkvMixer::Scratch::take(const ScratchSource& source) {
  if (row_size_ == 0) return {};
  FT_ASSIGN_OR_RETURN(x, source.act(inputs_));
  FT_ASSIGN_OR_RETURN(mixed, source.act(int64_t{WkvSpec::kNumMixes} * inputs_));
  FT_ASSIGN_OR_RETURN(low, source.floats(rank_));
  FT_ASSIGN_OR_RETURN(low_act, source.act(rank_));
  for (float** rows :
       {&queries, &keys, &values, &decays, &rates, &shares, &gates, &first_values, &left}) {
    FT_ASSIGN_OR_RETURN(*rows, source.floats(v_size_));
  }
  FT_ASSIGN_OR_RETURN(packed, source.floats(row_size_));
  FT_ASSIGN_OR_RETURN(gated, source.act(v_size_));
  return {};
}

void WkvMixer::project(const LayerRows& rows, const void* x, const Scratch& scratch) const {
  cast_rows(rows, {x, dtype, scratch.x, dtype, spec.inputs});
}

void WkvMixer::shift(const LayerRows& rows, const LayerState& state, const Scratch& scratch) const {
  shift_rows(rows.queue, {.counts = rows.counts,
                          .x = scratch.x,
                          .mixes = mixes,
                          .positions = rows.positions,
                          .row_slot = rows.row_slot,
                          .history = state.history,
                          .out = scratch.mixed,
                          .num_mixes = WkvSpec::kNumMixes,
                          .size = spec.inputs,
                          .max_rows = rows.max_rows,
                          .history_rows = state.history_rows,
                          .history_stride = 2 * spec.inputs,
                          .dtype = dtype});
}

// What the mixed rows are made into.
void WkvMixer::make(const LayerRows& rows, const Scratch& scratch) const {
  const int64_t each = int64_t{rows.max_rows} * spec.inputs * int64_t(dtype_size(dtype));
  const auto mixed = [&](Mix mix) {
    return static_cast<const std::byte*>(scratch.mixed) + int64_t{mix} * each;
  };
  multiply(rows, mixed(kQueries), queries, {scratch.queries}, dtype);
  multiply(rows, mixed(kKeys), keys, {scratch.keys}, dtype);
  multiply(rows, mixed(kValues), values, {scratch.values}, dtype);
  const auto make_low = [&](const void* x, const Factors& factors, float* to,
                            std::optional<Activation> activation) {
    const int32_t rank = factors.low.outputs;
    if (rank == 0) return;
    multiply(rows, x, factors.low, {scratch.low}, dtype);
    if (activation) {
      activate(rows.queue, {.counts = rows.counts,
                            .x = scratch.low,
                            .out = scratch.low_act,
                            .max_rows = rows.max_rows,
                            .size = rank,
                            .activation = *activation,
                            .out_dtype = dtype});
    } else {
      cast_rows(rows, {scratch.low, DType::kF32, scratch.low_act, dtype, rank});
    }
    multiply(rows, scratch.low_act, factors.high, {to}, dtype);
  };
  make_low(mixed(kDecays), decays, scratch.decays, Activation::kTanh);
  make_low(mixed(kRates), rates, scratch.rates, std::nullopt);
  make_low(mixed(kValues), shares, scratch.shares, std::nullopt);
  make_low(mixed(kGates), gates, scratch.gates, Activation::kSigmoid);
}

void WkvMixer::pack(const LayerRows& rows, const Scratch& scratch) const {
  wkv_inputs(rows.queue, {.counts = rows.counts,
                          .r = scratch.queries,
                          .k = scratch.keys,
                          .v = scratch.values,
                          .decays = scratch.decays,
                          .rates = scratch.rates,
                          .shares = spec.is_first ? nullptr : scratch.shares,
                          .first_values = scratch.first_values,
                          .key_scale = key_scale,
                          .rate_scale = rate_scale,
                          .out = scratch.packed,
                          .shape = spec.shape,
                          .max_rows = rows.max_rows});
}

void WkvMixer::attend(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const {
  const LayerState& state = kv.state;
  shift(rows, state, scratch);
  make(rows, scratch);
  pack(rows, scratch);
  wkv(rows.queue, {.counts = rows.counts,
                   .x = scratch.packed,
                   .positions = rows.positions,
                   .row_slot = rows.row_slot,
                   .slots = state.slots,
                   .states = state.states,
                   .committed = state.committed,
                   .pending = state.pending,
                   .out = scratch.left,
                   .shape = spec.shape,
                   .max_rows = rows.max_rows,
                   .pending_rows = state.pending_rows});
  wkv_output(rows.queue, {.counts = rows.counts,
                          .left = scratch.left,
                          .packed = scratch.packed,
                          .gates = scratch.gates,
                          .bonus = bonus,
                          .weights = norm,
                          .biases = norm_bias,
                          .out = scratch.gated,
                          .shape = spec.shape,
                          .max_rows = rows.max_rows,
                          .eps = spec.norm_eps,
                          .dtype = dtype});
}

}  // namespace foretoken
