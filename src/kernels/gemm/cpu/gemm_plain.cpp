#include "kernels/gemm/cpu/gemm_plain.h"

#include "base/check.h"
#include "kernels/cpu/lane_pair.h"

namespace foretoken::cpu {
namespace {

using Tile = float[kPlainMaxRows][kPlainCols];
static_assert(kPlainCols == kLanes);

// V: Lanes or LanePair.
template <int kRows, class V, class T>
FT_INLINE void multiply_rows(const T* x, const float* packed, int64_t k, Tile& tile) {
  V sum[kRows] = {};
  for (int64_t i = 0; i < k; ++i) {
    V weight;
    load(weight, packed + i * kPlainCols);
    for (int r = 0; r < kRows; ++r) add_product(sum[r], weight, load_one(x + r * k + i));
  }
  for (int r = 0; r < kRows; ++r) store(tile[r], sum[r]);
}

template <class V, class T>
FT_INLINE void multiply_any(const T* x, const float* packed, int rows, int64_t k, Tile& tile) {
  switch (rows) {
    case 1:
      return multiply_rows<1, V>(x, packed, k, tile);
    case 2:
      return multiply_rows<2, V>(x, packed, k, tile);
    case 3:
      return multiply_rows<3, V>(x, packed, k, tile);
    default:
      return multiply_rows<4, V>(x, packed, k, tile);
  }
}

FT_HOT void multiply_f32(const float* x, const float* packed, int rows, int64_t k, Tile& tile) {
  multiply_any<Lanes>(x, packed, rows, k, tile);
}
FT_HOT void multiply_bf16(const uint16_t* x, const float* packed, int rows, int64_t k, Tile& tile) {
  multiply_any<Lanes>(x, packed, rows, k, tile);
}
FT_AVX2 void multiply_f32_pairs(const float* x, const float* packed, int rows, int64_t k,
                                Tile& tile) {
  multiply_any<LanePair>(x, packed, rows, k, tile);
}
FT_AVX2 void multiply_bf16_pairs(const uint16_t* x, const float* packed, int rows, int64_t k,
                                 Tile& tile) {
  multiply_any<LanePair>(x, packed, rows, k, tile);
}

}  // namespace

void multiply_plain(const void* x, DType dtype, const float* packed, int rows, int64_t k,
                    float (&tile)[kPlainMaxRows][kPlainCols]) {
  FT_CHECK(rows >= 1 && rows <= kPlainMaxRows);
  static const bool pairs = has_lane_pairs();
  if (dtype == DType::kF32) {
    const auto multiply = pairs ? multiply_f32_pairs : multiply_f32;
    multiply(static_cast<const float*>(x), packed, rows, k, tile);
  } else {
    const auto multiply = pairs ? multiply_bf16_pairs : multiply_bf16;
    multiply(static_cast<const uint16_t*>(x), packed, rows, k, tile);
  }
}

}  // namespace foretoken::cpu
