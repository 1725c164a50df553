#include "convert/int_matrix.h"

#include <algorithm>
#include <cmath>

#include "base/bfloat16.h"
#include "base/check.h"
#include "base/half.h"

namespace foretoken {
namespace {

constexpr float kMaxHalfWeight = 65504;  // so that scales are halves
constexpr float kMaxBf16Weight = 1e30F;  // so that scales and their reciprocals are floats

uint16_t scale_bits(float scale, const IntForm& form) {
  return form.bf16_scale ? bf16_from_float(scale) : half_from_float(scale);
}

float scale_value(uint16_t bits, const IntForm& form) {
  return form.bf16_scale ? bf16_to_float(bits) : half_to_float(bits);
}

}  // namespace

IntGroup round_to_ints(const float* values, const IntForm& form, uint8_t* codes) {
  const auto most = static_cast<float>((1 << form.bits) - 1);
  float low = 0, high = 0;
  for (int64_t i = 0; i < form.group; ++i) {
    low = std::min(low, values[i]);
    high = std::max(high, values[i]);
  }
  const float width = form.has_zeros ? high - low : 2 * std::max(-low, high);
  const float scale = scale_value(scale_bits(width / most, form), form);
  float zero = form.middle();
  if (form.has_zeros) {
    zero = scale > 0 ? std::clamp(std::nearbyint(-low / scale), 0.0F, most) : 0.0F;
  }
  for (int64_t i = 0; i < form.group; ++i) {
    const float code = scale > 0 ? std::nearbyint(values[i] / scale) + zero : zero;
    codes[i] = static_cast<uint8_t>(std::clamp(code, 0.0F, most));
  }
  return {scale, static_cast<uint8_t>(zero)};
}

Result<IntMatrix> round_to_ints(const TensorRows& rows, const IntForm& form) {
  IntMatrix made;
  made.rows = rows.rows();
  made.cols = rows.cols();
  FT_CHECK(made.cols % form.group == 0);
  made.groups = made.cols / form.group;
  made.codes.resize(static_cast<size_t>(made.rows * made.cols));
  made.scales.resize(static_cast<size_t>(made.rows * made.groups));
  made.zeros.resize(made.scales.size());
  const float most = form.bf16_scale ? kMaxBf16Weight : kMaxHalfWeight;
  FT_RETURN_IF_ERROR(for_rows(rows, most, [&](int64_t row, const float* values) {
    for (int64_t g = 0; g < made.groups; ++g) {
      const IntGroup group = round_to_ints(values + g * form.group, form,
                                           made.codes.data() + row * made.cols + g * form.group);
      made.scales[static_cast<size_t>(row * made.groups + g)] = scale_bits(group.scale, form);
      made.zeros[static_cast<size_t>(row * made.groups + g)] = group.zero;
    }
  }));
  return made;
}

}  // namespace foretoken
