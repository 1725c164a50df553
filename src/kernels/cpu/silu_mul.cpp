#include "kernels/silu_mul.h"

#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_math.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/sample_math.h"

namespace foretoken::cpu {
namespace {

// x * sigmoid(x), by the exponential of -|x| so that nothing overflows.
FT_INLINE float silu(float x) {
  const float e = sample_math::exp_nonpositive(x < 0.0f ? x : -x);
  const float numerator = x < 0.0f ? e : 1.0f;
  return x * (numerator / (1.0f + e));
}

template <class Out>
FT_INLINE void silu_mul_row(const float* gate, const float* up, Out* out, int n) {
  int i = 0;
  for (; i + kOctet <= n; i += kOctet) {
    Octet x, y, e;
    load(x, gate + i);
    load(y, up + i);
    const OctetI32 negative = x < Octet{};
    exp_nonpositive(e, negative ? x : -x);
    const Octet numerator = negative ? e : Octet{} + 1.0f;
    y = x * (numerator / (1.0f + e)) * y;
    store(out + i, y);
  }
  for (; i < n; ++i) store_one(out + i, silu(gate[i]) * up[i]);
}

FT_HOT void silu_mul_f32(const float* gate, const float* up, float* out, int n) {
  silu_mul_row(gate, up, out, n);
}
FT_HOT void silu_mul_bf16(const float* gate, const float* up, uint16_t* out, int n) {
  silu_mul_row(gate, up, out, n);
}

}  // namespace

void silu_mul(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const SiluMulArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  for_each_row(pool, rows, 4 * int64_t{a.size}, [&](int64_t row) {
    const float* gate = a.gate_up + 2 * row * a.size;
    if (a.out_dtype == DType::kF32) {
      silu_mul_f32(gate, gate + a.size, static_cast<float*>(a.out) + row * a.size, a.size);
    } else {
      silu_mul_bf16(gate, gate + a.size, static_cast<uint16_t*>(a.out) + row * a.size, a.size);
    }
  });
}

}  // namespace foretoken::cpu
