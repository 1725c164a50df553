#include "kernels/attention/gate_heads.h"

#include "base/bfloat16.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_math.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

FT_INLINE void load_row(Octet& out, const float* from) { load(out, from); }
FT_INLINE void load_row(Octet& out, const uint16_t* from) {
  typedef uint16_t OctetU16 __attribute__((vector_size(16)));
  OctetU16 half;
  std::memcpy(&half, from, sizeof half);
  out = reinterpret_cast<Octet>(__builtin_convertvector(half, OctetU32) << 16);
}
FT_INLINE float value_of(float x) { return x; }
FT_INLINE float value_of(uint16_t x) { return bf16_to_float(x); }

// kernels/attention/gate_heads.h for eight values at once, with the same bits.
FT_INLINE void softplus_gates(Octet& out, const Octet& x) {
  const OctetI32 negative = x < Octet{};
  Octet e, log;
  exp_nonpositive(e, negative ? x : -x);
  const Octet u = 1.0f + e, rest = u - 1.0f;
  log_unit(log, u);
  const OctetI32 lost = rest == Octet{};
  log = lost ? e : log * (e / (lost ? Octet{} + 1.0f : rest));
  out = (negative ? Octet{} : x) + log;
}

// x[i] *= gate(gates[i])
template <HeadGate kGate, class T>
FT_INLINE void gate_elements(T* x, const float* gates, int64_t size) {
  int64_t i = 0;
  for (; i + kOctet <= size; i += kOctet) {
    Octet value, gate, factor;
    load_row(value, x + i);
    load(gate, gates + i);
    if constexpr (kGate == HeadGate::kSoftplus) {
      softplus_gates(factor, gate);
    } else {
      sigmoid(factor, gate);
    }
    store(x + i, value * factor);
  }
  for (; i < size; ++i) store_one(x + i, value_of(x[i]) * head_gate(kGate, gates[i]));
}

template <class T>
FT_INLINE void scale_head(T* x, float factor, int size) {
  int i = 0;
  for (; i + kOctet <= size; i += kOctet) {
    Octet value;
    load_row(value, x + i);
    store(x + i, value * factor);
  }
  for (; i < size; ++i) store_one(x + i, value_of(x[i]) * factor);
}

template <class T>
FT_INLINE void gate_row(const GateHeadsArgs& a, int64_t row) {
  const int64_t size = int64_t{a.num_heads} * a.head_dim;
  T* x = static_cast<T*>(a.x) + row * size;
  if (a.each_element != 0) {
    const float* gates = a.gates + row * size;
    return a.gate == HeadGate::kSoftplus ? gate_elements<HeadGate::kSoftplus>(x, gates, size)
                                         : gate_elements<HeadGate::kSigmoid>(x, gates, size);
  }
  const float* gates = a.gates + row * a.num_heads;
  for (int head = 0; head < a.num_heads; ++head) {
    scale_head(x + int64_t{head} * a.head_dim, head_gate(a.gate, gates[head]), a.head_dim);
  }
}

FT_HOT void gate_row_f32(const GateHeadsArgs& a, int64_t row) { gate_row<float>(a, row); }
FT_HOT void gate_row_bf16(const GateHeadsArgs& a, int64_t row) { gate_row<uint16_t>(a, row); }

}  // namespace

void gate_heads(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const GateHeadsArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  const int64_t cost = int64_t{a.each_element != 0 ? 4 : 1} * a.num_heads * a.head_dim;
  for_each_row(pool, rows, cost, [&](int64_t row) {
    a.dtype == DType::kF32 ? gate_row_f32(a, row) : gate_row_bf16(a, row);
  });
}

}  // namespace foretoken::cpu
