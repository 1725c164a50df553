#include "kernels/linear/gated_norm.h"

#include <cmath>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_pair.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

// A group of a row; gates and weights may be null.
struct NormGroup {
  const float* x;
  const float* gates;
  const float* weights;
  int size;
};

FT_INLINE void pass_gate(Octet& value, const float* gates, NormGate gate) {
  Octet x, share;
  load(x, gates);
  sigmoid(share, x);
  value = value * (gate == NormGate::kSilu ? x * share : share);
}

FT_INLINE float gate_factor(float x, NormGate gate) {
  const float share = activation_math::sigmoid(x);
  return gate == NormGate::kSilu ? x * share : share;
}

template <NormGate kGate>
FT_INLINE float group_squares(const NormGroup& g, bool gates_first) {
  LanePair sums = {};
  int i = 0;
  for (; i + 2 * kOctet <= g.size; i += 2 * kOctet) {
    LanePair x;
    load(x, g.x + i);
    if (kGate != NormGate::kNone && gates_first) {
      pass_gate(x.low, g.gates + i, kGate);
      pass_gate(x.high, g.gates + i + kOctet, kGate);
    }
    add_product(sums, x, x);
  }
  float total = sum_lanes(sums);
  for (; i < g.size; ++i) {
    const bool gated = kGate != NormGate::kNone && gates_first;
    const float x = gated ? g.x[i] * gate_factor(g.gates[i], kGate) : g.x[i];
    total += x * x;
  }
  return total;
}

// (x * gate) * (factor * weight), or (x * factor * weight) * gate
template <NormGate kGate, class Out>
FT_INLINE void write_group(const NormGroup& g, bool gates_first, float factor, Out* out) {
  constexpr bool kGated = kGate != NormGate::kNone;
  int i = 0;
  for (; i + kOctet <= g.size; i += kOctet) {
    Octet value;
    load(value, g.x + i);
    if (kGated && gates_first) pass_gate(value, g.gates + i, kGate);
    if (g.weights != nullptr) {
      Octet weight;
      load(weight, g.weights + i);
      value = value * factor * weight;
    }
    if (kGated && !gates_first) pass_gate(value, g.gates + i, kGate);
    store(out + i, value);
  }
  for (; i < g.size; ++i) {
    float value = g.x[i];
    if (kGated && gates_first) value *= gate_factor(g.gates[i], kGate);
    if (g.weights != nullptr) value = value * factor * g.weights[i];
    if (kGated && !gates_first) value *= gate_factor(g.gates[i], kGate);
    store_one(out + i, value);
  }
}

template <NormGate kGate>
FT_INLINE void norm_groups(const GatedNormArgs& a, int64_t row) {
  const int64_t size = int64_t{a.num_groups} * a.group_size;
  for (int group = 0; group < a.num_groups; ++group) {
    const int64_t at = int64_t{group} * a.group_size;
    const NormGroup g{
        a.x + row * size + at, a.gates != nullptr ? a.gates + row * a.gate_stride + at : nullptr,
        a.weights == nullptr ? nullptr : a.weights + (a.own_weights != 0 ? at : 0), a.group_size};
    float factor = 1.0f;
    if (a.weights != nullptr) {
      const float squares = group_squares<kGate>(g, a.gates_first != 0);
      factor = 1.0f / std::sqrt(squares / static_cast<float>(a.group_size) + a.eps);
    }
    if (a.dtype == DType::kF32) {
      write_group<kGate>(g, a.gates_first != 0, factor,
                         static_cast<float*>(a.out) + row * size + at);
    } else {
      write_group<kGate>(g, a.gates_first != 0, factor,
                         static_cast<uint16_t*>(a.out) + row * size + at);
    }
  }
}

FT_HOT void norm_plain(const GatedNormArgs& a, int64_t row) {
  norm_groups<NormGate::kNone>(a, row);
}
FT_HOT void norm_silu(const GatedNormArgs& a, int64_t row) { norm_groups<NormGate::kSilu>(a, row); }
FT_HOT void norm_sigmoid(const GatedNormArgs& a, int64_t row) {
  norm_groups<NormGate::kSigmoid>(a, row);
}

}  // namespace

void gated_norm(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const GatedNormArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  const auto norm_row = a.gate == NormGate::kNone   ? norm_plain
                        : a.gate == NormGate::kSilu ? norm_silu
                                                    : norm_sigmoid;
  for_each_row(pool, rows, 4 * int64_t{a.num_groups} * a.group_size,
               [&](int64_t row) { norm_row(a, row); });
}

}  // namespace foretoken::cpu
