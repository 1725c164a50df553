#include "kernels/quant/cpu/quant_rows.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>

#include "base/check.h"
#include "base/thread_role.h"
#include "kernels/cpu/hot.h"

namespace foretoken::cpu {
namespace {

typedef int32_t LanesI32 __attribute__((vector_size(64)));
typedef int8_t LanesI8 __attribute__((vector_size(16)));

constexpr uint32_t kInfinity = 0x7f800000u;
constexpr float kSmallest =
    1e-30f;  // below it a step is zero; the inverse of its scale may overflow
constexpr int64_t kElementsOfAThread = 32 << 10;

FT_INLINE uint32_t highest_lane(const LanesU32& v) {
  uint32_t best = 0;
  for (int i = 0; i < kLanes; ++i) best = v[i] > best ? v[i] : best;
  return best;
}

FT_INLINE int32_t sum_of_lanes(const LanesI32& v) {
  int32_t sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += v[i];
  return sum;
}

// Sixteen codes, rounded to nearest even; their sum.
FT_INLINE int32_t quantize_lanes(const Lanes& v, float inverse, int8_t* codes) {
  constexpr float kMagic = 0x1.8p23f;  // moves the integer into the lowest bits
  const Lanes moved = v * inverse + kMagic;
  LanesI32 bits;
  std::memcpy(&bits, &moved, sizeof bits);
  bits -= 0x4b400000;
  const LanesI8 narrow = __builtin_convertvector(bits, LanesI8);
  std::memcpy(codes, &narrow, sizeof narrow);
  return sum_of_lanes(bits);
}

template <class T>
FT_INLINE void quantize_any(const T* x, int64_t k, int64_t stride, QuantStep* step) {
  for (int64_t i = 0; i < k; i += kQuantStep, step += stride) {
    Lanes low, high;
    load(low, x + i);
    load(high, x + i + kLanes);
    LanesU32 low_bits, high_bits;
    std::memcpy(&low_bits, &low, sizeof low_bits);
    std::memcpy(&high_bits, &high, sizeof high_bits);
    low_bits &= 0x7fffffffu;
    high_bits &= 0x7fffffffu;
    // As integers, so that no NaN is passed over.
    const uint32_t bits = highest_lane(low_bits > high_bits ? low_bits : high_bits);
    float highest;
    std::memcpy(&highest, &bits, sizeof highest);
    const bool is_usable = bits < kInfinity && highest >= kSmallest;
    const float inverse = is_usable ? 127.0f / highest : 0.0f;
    if (!is_usable) low = high = Lanes{};
    step->scale = bits >= kInfinity ? std::numeric_limits<float>::quiet_NaN()
                  : is_usable       ? highest * (1.0f / 127.0f)
                                    : 0.0f;
    const int32_t first = quantize_lanes(low, inverse, step->codes);
    const int32_t last = quantize_lanes(high, inverse, step->codes + kLanes);
    step->scaled_sum = step->scale * static_cast<float>(first + last);
    step->minus_middle4 = -8 * (first + last);
    step->minus_middle8 = -128 * (first + last);
    step->minus_middle6[0] = -32 * first;
    step->minus_middle6[1] = -32 * last;
    step->scaled_sums16[0] = step->scale * static_cast<float>(first);
    step->scaled_sums16[1] = step->scale * static_cast<float>(last);
  }
}

FT_HOT void quantize_f32(const float* x, int64_t k, int64_t stride, QuantStep* steps) {
  quantize_any(x, k, stride, steps);
}
FT_HOT void quantize_bf16(const uint16_t* x, int64_t k, int64_t stride, QuantStep* steps) {
  quantize_any(x, k, stride, steps);
}

std::atomic<int64_t> longest_row{0};

// Pages that are not written to take no memory.
QuantStep* thread_steps() {
  thread_local std::unique_ptr<QuantStep[]> steps;
  thread_local int64_t reserved = 0;
  const int64_t wanted = longest_row.load(std::memory_order_relaxed);
  if (wanted > reserved) {
    const ForeignAllocationScope once;
    steps.reset(new QuantStep[static_cast<size_t>(kMaxQuantizedRows * wanted / kQuantStep)]);
    reserved = wanted;
  }
  return steps.get();
}

}  // namespace

void quantize_row(const void* x, DType dtype, int64_t k, int64_t stride, QuantStep* steps) {
  if (dtype == DType::kF32) {
    quantize_f32(static_cast<const float*>(x), k, stride, steps);
  } else {
    quantize_bf16(static_cast<const uint16_t*>(x), k, stride, steps);
  }
}

void reserve_quant_rows(int64_t k) {
  int64_t seen = longest_row.load(std::memory_order_relaxed);
  while (k > seen && !longest_row.compare_exchange_weak(seen, k, std::memory_order_relaxed)) {
  }
}

QuantRows quantize_rows(CpuPool& pool, const void* x, DType dtype, int num_rows, int64_t k,
                        int block_rows) {
  FT_CHECK(num_rows > 0 && num_rows <= kMaxQuantizedRows && k % kQuantStep == 0);
  QuantStep* steps = thread_steps();
  const QuantRows rows{steps, k / kQuantStep, num_rows, block_rows};
  const auto quantize = [&](int64_t row) {
    const auto block = static_cast<int>(row / block_rows);
    const int64_t at = int64_t{block} * block_rows * rows.num_steps + row % block_rows;
    const auto* from =
        static_cast<const std::byte*>(x) + row * k * static_cast<int64_t>(dtype_size(dtype));
    quantize_row(from, dtype, k, rows.rows_of_block(block), steps + at);
  };
  if (num_rows * k < kElementsOfAThread) {
    for (int row = 0; row < num_rows; ++row) quantize(row);
  } else {
    pool.parallel_for(num_rows, [&](int64_t row, int) { quantize(row); });
  }
  return rows;
}

}  // namespace foretoken::cpu
