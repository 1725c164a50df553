#include <algorithm>
#include <cstring>

#include "base/bfloat16.h"
#include "base/check.h"
#include "model/lora_pool.h"

namespace foretoken {
namespace {

void scale_element(float factor, DType dtype, std::byte* element) {
  if (dtype == DType::kF32) {
    float number;
    std::memcpy(&number, element, sizeof number);
    number *= factor;
    std::memcpy(element, &number, sizeof number);
    return;
  }
  uint16_t bits;
  std::memcpy(&bits, element, sizeof bits);
  bits = bf16_from_float(bf16_to_float(bits) * factor);
  std::memcpy(element, &bits, sizeof bits);
}

}  // namespace

// Rows of a as they are but for zeros where inputs are padded and the order of heads that take
// turns in the file, or its columns where they are looked up; zeros behind the adapter's own rank.
void LoraPool::fill_a(const Part& part, const LoraLinear& linear, int32_t padded,
                      std::byte* a) const {
  const size_t size = dtype_size(dtype_);
  const auto inputs = static_cast<size_t>(linear.inputs);
  const auto count = static_cast<size_t>(part.inputs.count);
  const auto rank = static_cast<size_t>(linear.rank);
  if (part.place == AdaptedPlace::kEmbedding) {
    for (size_t id = 0; id < std::min(count, inputs); ++id) {
      for (size_t j = 0; j < rank; ++j) {
        std::memcpy(a + (id * static_cast<size_t>(padded) + j) * size,
                    linear.a.data() + (j * inputs + id) * size, size);
      }
    }
    return;
  }
  // Whole heads, where they are padded or in another order.
  const bool pads = part.columns.to > 0, turns = part.turning.keys > 0;
  FT_CHECK(!pads || !turns);
  const size_t run = pads    ? static_cast<size_t>(part.columns.to)
                     : turns ? static_cast<size_t>(part.turning.rows)
                             : count;
  const size_t copied = pads ? static_cast<size_t>(part.columns.from) : run;
  FT_CHECK(!pads || part.inputs.first % part.columns.to == 0);
  for (size_t j = 0; j < rank; ++j) {
    for (size_t begin = 0; begin < count; begin += run) {
      const int64_t column = part.inputs.source_of(static_cast<int64_t>(begin));
      const size_t from =
          j * inputs + static_cast<size_t>(part.turning.of_folder(part.columns.source_of(column)));
      std::memcpy(a + (j * count + begin) * size, linear.a.data() + from * size, copied * size);
    }
  }
}

// Its columns side by side; zeros behind the adapter's own rank.
void LoraPool::fill_b(const Part& part, const LoraLinear& linear, std::byte* b) const {
  const size_t size = dtype_size(dtype_);
  const auto rank = static_cast<size_t>(linear.rank);
  const auto stride = static_cast<size_t>(lora_stride(part.num_rows()));
  for (size_t row = 0; row < part.rows.size(); ++row) {
    // A zero that is no row of the adapter's.
    if (part.rows[row] < 0 || part.rows[row] >= linear.outputs) continue;
    const std::byte* from = linear.b.data() + static_cast<size_t>(part.rows[row]) * rank * size;
    for (size_t j = 0; j < rank; ++j) {
      std::byte* to = b + (j * stride + row) * size;
      std::memcpy(to, from + j * size, size);
      if (part.row_factors[row] != 1) scale_element(part.row_factors[row], dtype_, to);
    }
  }
}

// Rows that are no rows of the adapter's stay as they are.
void LoraPool::fill_factors(const Part& part, const LoraLinear& linear, std::byte* factors) {
  for (size_t row = 0; row < part.rows.size(); ++row) {
    const float factor =
        part.rows[row] < 0 ? 1.0f : linear.factors[static_cast<size_t>(part.rows[row])];
    std::memcpy(factors + row * sizeof factor, &factor, sizeof factor);
  }
}

}  // namespace foretoken
