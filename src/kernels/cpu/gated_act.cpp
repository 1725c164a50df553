#include "kernels/gated_act.h"

#include "kernels/activation_math.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_math.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

template <Activation kActivation>
FT_INLINE float share_of(float x) {
  if constexpr (kActivation == Activation::kSilu) return activation_math::sigmoid(x);
  if constexpr (kActivation == Activation::kGelu) return activation_math::gelu_share(x);
  return activation_math::gelu_tanh_share(x);
}

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

template <Activation kActivation, class Out>
FT_INLINE void gate_row(const float* gate, const float* up, Out* out, int n) {
  int i = 0;
  for (; i + kOctet <= n; i += kOctet) {
    Octet x, y, share;
    load(x, gate + i);
    load(y, up + i);
    share_of<kActivation>(share, x);
    y = x * share * y;
    store(out + i, y);
  }
  for (; i < n; ++i) store_one(out + i, gate[i] * share_of<kActivation>(gate[i]) * up[i]);
}

template <class Out>
FT_INLINE void gate_any(Activation activation, const float* gate, const float* up, Out* out,
                        int n) {
  switch (activation) {
    case Activation::kSilu:
      return gate_row<Activation::kSilu>(gate, up, out, n);
    case Activation::kGelu:
      return gate_row<Activation::kGelu>(gate, up, out, n);
    case Activation::kGeluTanh:
      return gate_row<Activation::kGeluTanh>(gate, up, out, n);
  }
}

FT_HOT void gate_f32(Activation activation, const float* gate, const float* up, float* out, int n) {
  gate_any(activation, gate, up, out, n);
}
FT_HOT void gate_bf16(Activation activation, const float* gate, const float* up, uint16_t* out,
                      int n) {
  gate_any(activation, gate, up, out, n);
}

}  // namespace

void gated_act(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const GatedActArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  for_each_row(pool, rows, 4 * int64_t{a.size}, [&](int64_t row) {
    const float* gate = a.gate_up + 2 * row * a.size;
    const float* up = gate + a.size;
    if (a.out_dtype == DType::kF32) {
      gate_f32(a.activation, gate, up, static_cast<float*>(a.out) + row * a.size, a.size);
    } else {
      gate_bf16(a.activation, gate, up, static_cast<uint16_t*>(a.out) + row * a.size, a.size);
    }
  });
}

}  // namespace foretoken::cpu
