#include "kernels/lora/cpu/row_dots.h"

#include "kernels/cpu/lane_pair.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

// V: Lanes or LanePair.
template <class V, class T>
FT_INLINE void sum_four(const T* a, const T* x, int64_t k, float* sums) {
  V sum[kDotsAtOnce] = {};
  int64_t i = 0;
  for (; i + kLanes <= k; i += kLanes) {
    V right;
    load(right, x + i);
    for (int j = 0; j < kDotsAtOnce; ++j) {
      V left;
      load(left, a + j * k + i);
      add_product(sum[j], left, right);
    }
  }
  for (int j = 0; j < kDotsAtOnce; ++j) {
    sums[j] = sum_lanes(sum[j]);
    for (int64_t at = i; at < k; ++at) sums[j] += load_one(a + j * k + at) * load_one(x + at);
  }
}

FT_HOT void sum_four_f32(const float* a, const float* x, int64_t k, float* sums) {
  sum_four<Lanes>(a, x, k, sums);
}
FT_HOT void sum_four_bf16(const uint16_t* a, const uint16_t* x, int64_t k, float* sums) {
  sum_four<Lanes>(a, x, k, sums);
}
template <class T>
FT_AVX2 void sum_four_pairs(const T* a, const T* x, int64_t k, float* sums) {
  sum_four<LanePair>(a, x, k, sums);
}

}  // namespace

void multiply_four(const RowDots& dots, int64_t first, int64_t row, float* sums) {
  static const bool pairs = has_lane_pairs();
  const int64_t k = dots.k;
  if (dots.dtype == DType::kF32) {
    const auto multiply = pairs ? sum_four_pairs<float> : sum_four_f32;
    multiply(static_cast<const float*>(dots.matrix) + first * k,
             static_cast<const float*>(dots.x) + row * k, k, sums);
  } else {
    const auto multiply = pairs ? sum_four_pairs<uint16_t> : sum_four_bf16;
    multiply(static_cast<const uint16_t*>(dots.matrix) + first * k,
             static_cast<const uint16_t*>(dots.x) + row * k, k, sums);
  }
}

}  // namespace foretoken::cpu
