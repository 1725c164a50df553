#include "kernels/gemm/cpu/gated_row.h"

#include "kernels/activation_math.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_math.h"

namespace foretoken::cpu {
namespace {

template <Activation kActivation>
FT_INLINE void share_of(Octet& out, const Octet& x) {
  if constexpr (kActivation == Activation::kSilu) {
    sigmoid(out, x);
  } else if constexpr (kActivation == Activation::kGelu) {
    gelu_share(out, x);
  } else {
    gelu_tanh_share(out, x);
  }
}

FT_INLINE void load_sum(Octet& out, const float* from, const float* bias, int at) {
  load(out, from + at);
  if (bias == nullptr) return;
  Octet more;
  load(more, bias + at);
  out += more;
}

FT_INLINE float sum_at(const float* from, const float* bias, int at) {
  return bias == nullptr ? from[at] : from[at] + bias[at];
}

template <Activation kActivation, class Out>
FT_INLINE void write_gated_row(const GatedRow& row, Out* out) {
  int i = 0;
  for (; i + kOctet <= row.size; i += kOctet) {
    Octet x, y, share;
    load_sum(x, row.gate, row.gate_bias, i);
    load_sum(y, row.up, row.up_bias, i);
    share_of<kActivation>(share, x);
    y = x * share * y;
    store(out + i, y);
  }
  for (; i < row.size; ++i) {
    const float gate = sum_at(row.gate, row.gate_bias, i);
    store_one(out + i, activation_math::gated<kActivation>(gate, sum_at(row.up, row.up_bias, i)));
  }
}

template <class Out>
FT_INLINE void write_clamped(const GatedRow& row, Out* out) {
  const GateClamp clamp = row.clamp;
  const Octet highest_gate = Octet{} + clamp.limit;
  const Octet highest = Octet{} + clamp.up_limit, lowest = Octet{} - clamp.up_limit;
  int i = 0;
  for (; i + kOctet <= row.size; i += kOctet) {
    Octet x, y, share;
    load_sum(x, row.gate, row.gate_bias, i);
    load_sum(y, row.up, row.up_bias, i);
    x = x > highest_gate ? highest_gate : x;
    y = y > highest ? highest : y;
    y = y < lowest ? lowest : y;
    sigmoid(share, x * clamp.alpha);
    y = (y + clamp.shift) * (x * share);
    store(out + i, y);
  }
  for (; i < row.size; ++i) {
    const float gate = sum_at(row.gate, row.gate_bias, i);
    const float up = sum_at(row.up, row.up_bias, i);
    store_one(out + i, activation_math::clamped_gated(clamp, gate, up));
  }
}

template <class Out>
FT_INLINE void write_situ(const GatedRow& row, Out* out) {
  const GateClamp clamp = row.clamp;
  const bool bounds_ups = clamp.up_limit > 0;
  int i = 0;
  for (; i + kOctet <= row.size; i += kOctet) {
    Octet x, y, share, bounded;
    load_sum(x, row.gate, row.gate_bias, i);
    load_sum(y, row.up, row.up_bias, i);
    sigmoid(share, x);
    tanh_of(bounded, x / clamp.limit);
    x = clamp.limit * bounded;
    if (bounds_ups) {
      tanh_of(bounded, y / clamp.up_limit);
      y = clamp.up_limit * bounded;
    }
    y = x * share * y;
    store(out + i, y);
  }
  for (; i < row.size; ++i) {
    const float gate = sum_at(row.gate, row.gate_bias, i);
    const float up = sum_at(row.up, row.up_bias, i);
    store_one(out + i, activation_math::situ_gated(clamp, gate, up));
  }
}

template <class Out>
FT_INLINE void write_squared(const GatedRow& row, Out* out) {
  for (int i = 0; i < row.size; ++i) {
    const float gate = sum_at(row.gate, row.gate_bias, i);
    const float positive = gate > 0 ? gate : 0.0f;
    store_one(out + i, positive * positive * sum_at(row.up, row.up_bias, i));
  }
}

template <class Out>
FT_INLINE void write_rectified(const GatedRow& row, Out* out) {
  for (int i = 0; i < row.size; ++i) {
    const float gate = sum_at(row.gate, row.gate_bias, i);
    store_one(out + i, activation_math::rectified_gated(gate, sum_at(row.up, row.up_bias, i)));
  }
}

template <class Out>
FT_INLINE void write_share(const GatedRow& row, Out* out) {
  int i = 0;
  for (; i + kOctet <= row.size; i += kOctet) {
    Octet x, y, share;
    load_sum(x, row.gate, row.gate_bias, i);
    load_sum(y, row.up, row.up_bias, i);
    gelu_share(share, x);
    y = share * y;
    store(out + i, y);
  }
  for (; i < row.size; ++i) {
    const float gate = sum_at(row.gate, row.gate_bias, i);
    store_one(out + i, activation_math::share_gated(gate, sum_at(row.up, row.up_bias, i)));
  }
}

template <class Out>
FT_INLINE void write_any(Activation activation, const GatedRow& row, Out* out) {
  switch (activation) {
    case Activation::kSilu:
      return write_gated_row<Activation::kSilu>(row, out);
    case Activation::kGelu:
      return write_gated_row<Activation::kGelu>(row, out);
    case Activation::kClampedSilu:
      return write_clamped(row, out);
    case Activation::kSitu:
      return write_situ(row, out);
    case Activation::kReluSquared:
      return write_squared(row, out);
    case Activation::kRelu:
      return write_rectified(row, out);
    case Activation::kGeluShare:
      return write_share(row, out);
    default:
      return write_gated_row<Activation::kGeluTanh>(row, out);
  }
}

FT_HOT void write_f32(Activation activation, const GatedRow& row, float* out) {
  write_any(activation, row, out);
}
FT_HOT void write_bf16(Activation activation, const GatedRow& row, uint16_t* out) {
  write_any(activation, row, out);
}

}  // namespace

void write_gated(Activation activation, const GatedRow& row, float* out) {
  write_f32(activation, row, out);
}
void write_gated(Activation activation, const GatedRow& row, uint16_t* out) {
  write_bf16(activation, row, out);
}

}  // namespace foretoken::cpu
