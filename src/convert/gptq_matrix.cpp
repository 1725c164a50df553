#include "convert/gptq_matrix.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/half.h"

namespace foretoken {
namespace {

constexpr float kMax = 65504;  // so that scales are halves

uint32_t repeated(uint32_t code, int bits) {
  uint32_t word = 0;
  for (int at = 0; at < 32; at += bits) word |= code << at;
  return word;
}

// A group of a row: its codes go one after the other into `codes`; returns the bits of the scale.
uint16_t quantize_group(const float* values, const GptqForm& form, uint8_t* codes) {
  const int most = (1 << form.bits) - 1, zero = 1 << (form.bits - 1);
  float largest = 0;
  for (int64_t i = 0; i < form.group; ++i) largest = std::max(largest, std::abs(values[i]));
  const uint16_t bits = half_from_float(2 * largest / static_cast<float>(most));
  const float scale = half_to_float(bits);
  for (int64_t i = 0; i < form.group; ++i) {
    const float code = scale > 0 ? std::nearbyint(values[i] / scale) + static_cast<float>(zero)
                                 : static_cast<float>(zero);
    codes[i] = static_cast<uint8_t>(std::clamp(code, 0.0F, static_cast<float>(most)));
  }
  return bits;
}

}  // namespace

Result<GptqMatrix> quantize_gptq(const TensorRows& rows, const GptqForm& form) {
  const int64_t n = rows.rows(), k = rows.cols(), pack = form.per_word();
  FT_CHECK(k % form.group == 0 && n % pack == 0 && k % pack == 0);
  const int64_t num_groups = k / form.group;
  GptqMatrix matrix;
  matrix.codes.resize(static_cast<size_t>(k / pack * n));
  matrix.scales.resize(static_cast<size_t>(num_groups * n));
  const uint32_t stored_zero = (1u << (form.bits - 1)) - 1;
  matrix.zeros.assign(static_cast<size_t>(num_groups * (n / pack)),
                      repeated(stored_zero, form.bits));
  for (int64_t i = 0; i < k; ++i) matrix.groups.push_back(static_cast<int32_t>(i / form.group));
  const Status status = for_slices(n, [&](int64_t first, int64_t count) -> Status {
    std::vector<float> values(static_cast<size_t>(k));
    std::vector<uint8_t> codes(static_cast<size_t>(k));
    std::vector<std::byte> scratch;
    for (int64_t row = first; row < first + count; ++row) {
      FT_RETURN_IF_ERROR(rows.read(row, 1, kMax, values.data(), scratch));
      for (int64_t g = 0; g < num_groups; ++g) {
        matrix.scales[static_cast<size_t>(g * n + row)] =
            quantize_group(values.data() + g * form.group, form, codes.data() + g * form.group);
      }
      for (int64_t i = 0; i < k; ++i) {
        matrix.codes[static_cast<size_t>(i / pack * n + row)] |=
            uint32_t{codes[static_cast<size_t>(i)]} << (i % pack * form.bits);
      }
    }
    return {};
  });
  if (!status.ok()) return status;
  return matrix;
}

}  // namespace foretoken
