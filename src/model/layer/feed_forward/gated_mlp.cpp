#include "model/layer/feed_forward/gated_mlp.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/gemm/gated_act.h"
#include "kernels/rows/cut_low.h"

namespace foretoken {
namespace {

// The rows of the rank's inner columns.
std::vector<TensorPart> gate_up_parts(const std::string& base, const GatedMlpSpec& whole,
                                      const Sharding& sharding) {
  const int64_t inner = whole.inner;
  const ShardRange own = shard_of(inner, sharding);
  if (!whole.fused) {
    TensorPart gates{base + whole.gate, inner, own.begin, own.count};
    gates.padded = PaddedHeads::scaled(whole.gate_scale);
    return {gates, {base + whole.up, inner, own.begin, own.count}};
  }
  const std::string fused = base + whole.gate_up;
  if (!sharding.is_cut() && !whole.ups_first) return {{fused, 2 * inner}};
  const TensorPart first{fused, 2 * inner, own.begin, own.count};
  const TensorPart second{fused, 2 * inner, inner + own.begin, own.count};
  if (whole.ups_first) return {second, first};
  return {first, second};
}

// Below how many standard deviations a normal number lies with probability p.
double normal_quantile(double p) {
  double low = -10, high = 10;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

// Adapters change gates and ups before these meet.
void expand_adapted(const GatedMlp& mlp, const LayerRows& rows, const void* x, void* gated) {
  const AdaptedRows adapted = adapted_rows(rows, mlp.gate_up, mlp.dtype);
  GemmArgs product = product_of(rows, x, mlp.gate_up, rows.lora->raw_gates, mlp.dtype);
  product.bias = nullptr;
  product.gated = GemmArgs::kRawGates;
  product.frees_next = 1;
  gemm(rows.queue, product);
  shrink_lora(rows.queue, adapted, x);
  expand_gates(rows.queue, adapted,
               {.counts = rows.counts,
                .weight = mlp.gate_up.weight.get(),
                .bias = mlp.gate_up.bias,
                .gated = gated,
                .activation = mlp.spec.activation});
}

}  // namespace

Status GatedMlp::load(PartLoader& loader, const std::string& layer, const GatedMlpSpec& whole) {
  const std::string base = layer + whole.base;
  if (!has_gated_act(whole.activation)) {
    return unsupported(loader.config().architecture +
                       ": an MLP with a gate cannot have the activation that config.json names; "
                       "set hidden_act to silu, gelu, gelu_pytorch_tanh or relu2");
  }
  spec = part_of(whole, loader.sharding());
  dtype = loader.config().dtype;
  deviations = static_cast<float>(normal_quantile(whole.sparsity));
  FT_RETURN_IF_ERROR(loader.load_linear(
      gate_up_parts(base, whole, loader.sharding()), loader.config().hidden_size, whole.bias,
      &gate_up, whole.apart() ? WeightOrder::kPlain : WeightOrder::kGateUp));
  if (whole.sub_norm != nullptr) {
    const ShardRange own = shard_of(whole.inner, loader.sharding());
    FT_RETURN_IF_ERROR(loader.load_norm_part(base + whole.sub_norm, whole.inner, own, &sub_norm));
    met_part = {{0, spec.inner, static_cast<int32_t>(own.begin), whole.inner, 0}, sub_norm.weight};
  }
  eps = loader.config().rms_norm_eps;
  return loader.load_summed(base + whole.down, whole.inner, whole.bias || whole.down_bias, &down,
                            PaddedHeads::scaled(whole.out_scale, true));
}

void GatedMlp::Scratch::fit(const GatedMlpSpec& part) {
  inner_ = std::max(inner_, part.inner);
  apart_ = apart_ || part.apart();
  normed_ = normed_ || part.sub_norm != nullptr;
}

Status GatedMlp::Scratch::take(const ScratchSource& source) {
  if (inner_ == 0) return {};
  FT_ASSIGN_OR_RETURN(gated, source.act(inner_));
  if (apart_) {
    FT_ASSIGN_OR_RETURN(apart, source.floats(2 * int64_t{inner_}));
  }
  if (normed_) {
    FT_ASSIGN_OR_RETURN(met, source.floats(inner_));
  }
  return {};
}

// Of gates of all ranks, each of which has as many.
void GatedMlp::cut_gates(const LayerRows& rows, const Scratch& scratch) const {
  CutLowArgs cut{.counts = rows.counts,
                 .x = scratch.apart,
                 .max_rows = rows.max_rows,
                 .stride = 2 * spec.inner,
                 .size = spec.inner,
                 .deviations = deviations};
  if (rows.ranks != nullptr) {
    tell_moments(rows, scratch.apart, spec.inner, 2 * spec.inner);
    cut.moments = rows.ranks->entries;
    cut.num_parts = rows.ranks->size;
    cut.num_entries = rows.ranks->num_entries;
  }
  cut_low(rows.queue, cut);
}

void GatedMlp::expand_apart(const LayerRows& rows, const void* x, const Scratch& scratch) const {
  multiply(rows, x, gate_up, {scratch.apart}, dtype);
  if (spec.sparsity > 0) cut_gates(rows, scratch);
  const bool normed = sub_norm.weight != nullptr;
  gated_act(rows.queue, {.counts = rows.counts,
                         .gate_up = scratch.apart,
                         .out = normed ? scratch.met : scratch.gated,
                         .max_rows = rows.max_rows,
                         .size = spec.inner,
                         .activation = spec.activation,
                         .out_dtype = normed ? DType::kF32 : dtype,
                         .clamp = spec.clamp});
  if (!normed) return;
  if (rows.ranks != nullptr) {
    return norm_over_ranks(rows, {&met_part, 1},
                           {scratch.met, spec.inner, eps, scratch.gated, dtype});
  }
  norm_rows(rows, scratch.met, nullptr, sub_norm, {spec.inner, eps}, {scratch.gated, dtype});
}

void GatedMlp::expand(const LayerRows& rows, const void* x, const Scratch& scratch) const {
  if (spec.apart()) return expand_apart(rows, x, scratch);
  if (rows.lora != nullptr && gate_up.lora.matrices != nullptr) {
    return expand_adapted(*this, rows, x, scratch.gated);
  }
  GemmArgs product = product_of(rows, x, gate_up, scratch.gated, dtype);
  product.out_dtype = dtype;
  product.gated = 1;
  product.activation = spec.activation;
  gemm(rows.queue, product);
}

}  // namespace foretoken
