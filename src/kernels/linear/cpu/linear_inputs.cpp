#include "kernels/linear/linear_inputs.h"

#include <algorithm>
#include <cmath>

#include "kernels/attention/gate_heads.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_math.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/linear/cpu/silu.h"

namespace foretoken::cpu {
namespace {

// to = from, or silu(from)
FT_HOT void copy_activated(const float* from, float* to, int count, bool silu) {
  if (!silu) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  pass_silu(from, to, count);
}

// Divides each head by its length where `unit`, and multiplies with `scale`.
FT_HOT void scale_heads(float* heads, const LinearShape& shape, bool unit, float scale) {
  if (!unit && scale == 1.0f) return;
  for (int head = 0; head < shape.key_heads; ++head) {
    float* x = heads + int64_t{head} * shape.key_dim;
    const float length = unit ? std::sqrt(sum_of_squares(x, shape.key_dim) + 1e-6f) : 1.0f;
    const float factor = scale / length;
    for (int i = 0; i < shape.key_dim; ++i) x[i] *= factor;
  }
}

float bias_of(const LinearInputsArgs& a, int i) {
  return a.decay_bias != nullptr ? a.decay_bias[i] : 0.0f;
}

// What the logarithm of a decay is made of, for kDelta and kBounded.
float log_decay(const LinearInputsArgs& a, float rate, float x) {
  if (a.gates == LinearGates::kDelta) return -rate * gate_softplus(x);
  return a.lower_bound * activation_math::sigmoid(rate * x);
}

void write_delta_gates(const LinearInputsArgs& a, int64_t row, float* decays, float* scales) {
  const float* decay = a.decay + row * a.decay_stride;
  const float* scale = a.scale + row * a.scale_stride;
  const int each = a.shape.channel_decay ? a.shape.key_dim : 1;
  for (int head = 0; head < a.shape.value_heads; ++head) {
    for (int i = head * each; i < (head + 1) * each; ++i) {
      decays[i] =
          sample_math::exp_nonpositive(log_decay(a, a.rates[head], decay[i] + bias_of(a, i)));
    }
    scales[head] = a.scale_factor * activation_math::sigmoid(scale[head]);
  }
}

void write_step_gates(const LinearInputsArgs& a, int64_t row, float* decays, float* scales) {
  const float* decay = a.decay + row * a.decay_stride;
  for (int head = 0; head < a.shape.value_heads; ++head) {
    const float step = activation_math::at_most(
        activation_math::at_least(gate_softplus(decay[head] + bias_of(a, head)), a.min_step),
        a.max_step);
    decays[head] = sample_math::exp_nonpositive(-a.rates[head] * step);
    scales[head] = step;
  }
}

void write_gates(const LinearInputsArgs& a, int64_t row, float* out) {
  float* decays = out + a.shape.decay_offset();
  float* scales = out + a.shape.scale_offset();
  switch (a.gates) {
    case LinearGates::kDelta:
    case LinearGates::kBounded:
      return write_delta_gates(a, row, decays, scales);
    case LinearGates::kStep:
      return write_step_gates(a, row, decays, scales);
    case LinearGates::kFixed:
      for (int head = 0; head < a.shape.value_heads; ++head) {
        decays[head] = sample_math::exp_nonpositive(-a.rates[head]);
      }
  }
}

void write_inputs(const LinearInputsArgs& a, int64_t row) {
  const LinearShape& shape = a.shape;
  float* out = a.out + row * shape.row_size();
  const int64_t at = row * a.stride;
  const bool silu = a.silu != 0, unit = a.unit != 0;
  copy_activated(a.q + at, out, shape.q_size(), silu);
  copy_activated(a.k + at, out + shape.k_offset(), shape.q_size(), silu);
  copy_activated(a.v + at, out + shape.v_offset(), shape.v_size(), silu);
  scale_heads(out, shape, unit, a.q_scale);
  scale_heads(out + shape.k_offset(), shape, unit, 1.0f);
  write_gates(a, row, out);
}

}  // namespace

void linear_inputs(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const LinearInputsArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  for_each_row(pool, rows, 2 * int64_t{a.shape.row_size()},
               [&](int64_t row) { write_inputs(a, row); });
}

}  // namespace foretoken::cpu
