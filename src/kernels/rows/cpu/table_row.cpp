#include "kernels/rows/cpu/table_row.h"

#include "base/bfloat16.h"
#include "base/half.h"
#include "kernels/cpu/hot.h"
#include "kernels/quant/cpu/quant_matrix.h"

namespace foretoken::cpu {
namespace {

template <class T>
FT_INLINE void widen_scaled(const T* from, float scale, float* to, int n) {
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Lanes lanes;
    load(lanes, from + i);
    lanes *= scale;
    store(to + i, lanes);
  }
  for (; i < n; ++i) to[i] = load_one(from + i) * scale;
}

FT_HOT void widen_f32(const float* from, float scale, float* to, int n) {
  widen_scaled(from, scale, to, n);
}
FT_HOT void widen_bf16(const uint16_t* from, float scale, float* to, int n) {
  widen_scaled(from, scale, to, n);
}

// half_to_float of sixteen at once.
FT_INLINE void widen_halves(Lanes& out, const LanesU16& halves) {
  typedef int32_t LanesI32 __attribute__((vector_size(64)));
  const LanesU32 bits = __builtin_convertvector(halves, LanesU32);
  const LanesU32 rest = bits & 0x7fffu;
  const Lanes tiny = __builtin_convertvector(reinterpret_cast<LanesI32>(rest), Lanes) * 0x1p-24f;
  const LanesU32 is_tiny = reinterpret_cast<LanesU32>(rest < 0x400u);
  const LanesU32 is_endless = reinterpret_cast<LanesU32>(rest >= 0x7c00u);
  const LanesU32 exponent = (112u << 23) + (is_endless & (112u << 23));
  const LanesU32 magnitude =
      (is_tiny & reinterpret_cast<LanesU32>(tiny)) | (~is_tiny & ((rest << 13) + exponent));
  out = reinterpret_cast<Lanes>(magnitude | ((bits & 0x8000u) << 16));
}

FT_HOT void widen_f16(const uint16_t* from, int64_t stride, float scale, float* to, int n) {
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    LanesU16 halves;
    for (int lane = 0; lane < kLanes; ++lane) halves[lane] = from[(i + lane) * stride];
    Lanes lanes;
    widen_halves(lanes, halves);
    lanes *= scale;
    store(to + i, lanes);
  }
  for (; i < n; ++i) to[i] = half_to_float(from[i * stride]) * scale;
}

void read_quantized(const RowTable& table, int64_t row, int32_t n, float scale, float* to) {
  static_cast<const QuantMatrix*>(table.data)->read_row(row, to);
  if (table.dtype == DType::kBF16) {
    for (int i = 0; i < n; ++i) to[i] = bf16_to_float(bf16_from_float(to[i]));
  }
  widen_f32(to, scale, to, n);
}

}  // namespace

void read_table_row(const RowTable& table, int64_t row, int32_t n, float scale, float* to) {
  if (table.quantized) return read_quantized(table, row, n, scale, to);
  if (table.dtype == DType::kF32) {
    return widen_f32(static_cast<const float*>(table.data) + row * n, scale, to, n);
  }
  const auto* data = static_cast<const uint16_t*>(table.data);
  if (table.dtype == DType::kBF16) return widen_bf16(data + row * n, scale, to, n);
  const int64_t first = row / table.together * table.together * n + row % table.together;
  widen_f16(data + first, table.together, scale, to, n);
}

}  // namespace foretoken::cpu
