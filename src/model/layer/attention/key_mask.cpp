#include "model/layer/attention/key_mask.h"

#include <cmath>
#include <vector>

#include "base/check.h"
#include "kernels/rows/mask_keys.h"
#include "kernels/rows/norm_columns.h"

namespace foretoken {

// Of ranks with the same values the first one counts them.
Status KeyMask::load(PartLoader& loader, const std::string& base, const GqaSpec& whole) {
  const Sharding& sharding = loader.sharding();
  const GqaSpec spec = part_of(whole, sharding);
  const ShardRange own = shard_of_kv_heads(whole.num_kv_heads, sharding);
  first_head = static_cast<int32_t>(own.begin);
  TensorPart part{base + "dt_proj", whole.num_kv_heads};
  part.padded = whole.padding(true);
  if (!is_first_with_kv_heads(whole.num_kv_heads, sharding)) part.padded.scale = 0;
  const ColumnRange values{whole.kv_size(), own.begin * whole.head_dim, spec.kv_size()};
  FT_RETURN_IF_ERROR(loader.load_columns({part}, values, &steps));
  FT_RETURN_IF_ERROR(
      loader.load_vector({{base + "A", whole.num_kv_heads, own.begin, own.count}}, &rates));
  eps = loader.config().rms_norm_eps * static_cast<float>(spec.value_dim) /
        static_cast<float>(spec.head_dim);
  FT_RETURN_IF_ERROR(load_norm(loader, base + "q_norm.weight", spec, spec.num_heads, &q_norm));
  return load_norm(loader, base + "k_norm.weight", spec, spec.num_kv_heads, &k_norm);
}

// The mean of squares is over more elements than the checkpoint's, so weights and eps make up for
// it: sqrt(sum / d + e) = sqrt(D / d) * sqrt(sum / D + e * d / D).
Status KeyMask::load_norm(PartLoader& loader, const std::string& name, const GqaSpec& spec,
                          int32_t heads, const float** out) const {
  const int64_t size = spec.value_dim;
  FT_RETURN_IF_ERROR(loader.weights().expect(name, {&size, 1}));
  std::vector<float> own(static_cast<size_t>(size), 1.0f);
  if (loader.weights().has_optional(name)) {
    FT_ASSIGN_OR_RETURN(own, loader.weights().numbers(name));
  }
  const double factor = std::sqrt(double(spec.value_dim) / spec.head_dim);
  for (float& weight : own) weight = static_cast<float>(weight * factor);
  own.resize(static_cast<size_t>(spec.head_dim));
  std::vector<float> all;
  for (int32_t i = 0; i < heads; ++i) all.insert(all.end(), own.begin(), own.end());
  return loader.upload(all, "the weights of norms", out);
}

void KeyMask::add(const LayerRows& rows, const GqaSpec& spec, DType dtype,
                  const Scratch& scratch) const {
  const auto norm = [&](const float* weight, int32_t column, int32_t heads) {
    norm_columns(rows.queue, {.counts = rows.counts,
                              .x = scratch.qkv,
                              .weight = weight,
                              .max_rows = rows.max_rows,
                              .stride = spec.qkv_size(),
                              .column = column,
                              .groups = heads,
                              .size = spec.head_dim,
                              .eps = eps});
  };
  norm(q_norm, 0, spec.num_heads);
  norm(k_norm, spec.q_size(), spec.num_kv_heads);
  const float* values = scratch.qkv + spec.q_size() + spec.kv_size();
  cast_rows(rows, {values, DType::kF32, scratch.values, dtype, spec.kv_size(), spec.qkv_size()});
  FT_CHECK(steps.outputs * sizeof(float) <= static_cast<size_t>(spec.q_size()) * dtype_size(dtype));
  gemm(rows.queue, product_of(rows, scratch.values, steps, scratch.steps, dtype));
  if (rows.ranks != nullptr) sum_over_ranks(rows, scratch.steps, steps.outputs);
  mask_keys(rows.queue, {.counts = rows.counts,
                         .qkv = scratch.qkv,
                         .steps = scratch.steps + first_head,
                         .rates = rates,
                         .max_rows = rows.max_rows,
                         .num_heads = spec.num_heads,
                         .num_kv_heads = spec.num_kv_heads,
                         .head_dim = spec.head_dim,
                         .element = spec.value_dim,
                         .scale = spec.scale,
                         .step_stride = steps.outputs});
}

double KeyMask::num_zeros(const GqaSpec& spec) {
  return double(spec.num_kv_heads) * spec.num_kv_heads * (spec.head_dim - spec.value_dim);
}

}  // namespace foretoken
