#include "kernels/gemm/cpu/gemm_plain.h"

#include "base/check.h"
#include "kernels/cpu/hot.h"

namespace foretoken::cpu {
namespace {

using Tile = float[kPlainMaxRows][kPlainCols];
static_assert(kPlainCols == kLanes);

template <int kRows, class T>
FT_INLINE void multiply_rows(const T* x, const float* packed, int64_t k, Tile& tile) {
  Lanes sum[kRows] = {};
  for (int64_t i = 0; i < k; ++i) {
    Lanes weight;
    load(weight, packed + i * kPlainCols);
    for (int r = 0; r < kRows; ++r) sum[r] += weight * load_one(x + r * k + i);
  }
  for (int r = 0; r < kRows; ++r) store(tile[r], sum[r]);
}

template <class T>
FT_INLINE void multiply_any(const T* x, const float* packed, int rows, int64_t k, Tile& tile) {
  switch (rows) {
    case 1:
      return multiply_rows<1>(x, packed, k, tile);
    case 2:
      return multiply_rows<2>(x, packed, k, tile);
    case 3:
      return multiply_rows<3>(x, packed, k, tile);
    default:
      return multiply_rows<4>(x, packed, k, tile);
  }
}

FT_HOT void multiply_f32(const float* x, const float* packed, int rows, int64_t k, Tile& tile) {
  multiply_any(x, packed, rows, k, tile);
}
FT_HOT void multiply_bf16(const uint16_t* x, const float* packed, int rows, int64_t k, Tile& tile) {
  multiply_any(x, packed, rows, k, tile);
}

}  // namespace

void multiply_plain(const void* x, DType dtype, const float* packed, int rows, int64_t k,
                    float (&tile)[kPlainMaxRows][kPlainCols]) {
  FT_CHECK(rows >= 1 && rows <= kPlainMaxRows);
  if (dtype == DType::kF32) {
    multiply_f32(static_cast<const float*>(x), packed, rows, k, tile);
  } else {
    multiply_bf16(static_cast<const uint16_t*>(x), packed, rows, k, tile);
  }
}

}  // namespace foretoken::cpu
