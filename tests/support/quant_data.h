#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "base/quantized_rows.h"

namespace foretoken {

// Every way to quantise that the kernels know.
inline const std::vector<QuantForm>& quant_forms() {
  static const std::vector<QuantForm> forms = {
      {8, GroupScale::kHalf, 32},
      {4, GroupScale::kHalf, 32},
      {8, GroupScale::kHalf, 256},
      {4, GroupScale::kHalf, 128},
      {4, GroupScale::kHalfAndZero, 32},
      {4, GroupScale::kHalfAndZero, 128},
      {4, GroupScale::kSuper, 32},
      {6, GroupScale::kSuperSigned, 16},
      {4, GroupScale::kHalfAndMinimum, 32},
      {4, GroupScale::kHalfAndMinimum, 64},
      {8, GroupScale::kHalfAndMinimum, 64},
      {5, GroupScale::kHalf, 32},
      {5, GroupScale::kHalfAndMinimum, 32},
      {5, GroupScale::kSuper, 32},
      {3, GroupScale::kSuperSigned, 16},
      {2, GroupScale::kSuper, 16},
      {4, GroupScale::kHalf, 32, CodeTable::kIq4},
      {4, GroupScale::kSuperSigned, 32, CodeTable::kIq4},
      {2, GroupScale::kHalfAndMinimum, 256},
      {4, GroupScale::kHalf, 32, CodeTable::kE2m1},
  };
  return forms;
}

// Others, which stay quantised on GPUs alone.
inline const std::vector<QuantForm>& more_quant_forms() {
  static const std::vector<QuantForm> forms = {
      {8, GroupScale::kFloatOfRow, 1, CodeTable::kE4m3},
      {8, GroupScale::kFloat, 128, CodeTable::kE4m3},
      {4, GroupScale::kHalf, 32, CodeTable::kE2m1, true},
      {4, GroupScale::kRowAndByte, 16, CodeTable::kE2m1},
  };
  return forms;
}

// Random rows as base/quantized_rows.h lays them out, with values of about 0.1. k is a multiple of
// 256.
inline std::vector<std::byte> random_quantized_rows(const QuantForm& form, int64_t rows, int64_t k,
                                                    uint32_t seed) {
  const bool is_super = form.scale == GroupScale::kSuper || form.scale == GroupScale::kSuperSigned;
  std::mt19937 random(seed);
  std::vector<std::byte> all;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t halves = quantized_row_halves(form, k);
    const int64_t bytes = quantized_row_bytes(form, k) - k - 2 * halves;
    for (int64_t i = 0; i < k; ++i) {
      const uint32_t code = random() & ((1u << form.bits) - 1);
      const bool is_nan = form.table == CodeTable::kE4m3 && (code & 127u) == 127u;
      all.push_back(static_cast<std::byte>(is_nan ? code - 1 : code));
    }
    if (form.table == CodeTable::kE4m3 || form.scale == GroupScale::kRowAndByte) {
      for (int64_t i = 0; i < halves / 2; ++i) {
        const float scale = std::ldexp(1.0f + static_cast<float>(random() % 1024) / 1024, -12);
        const auto* bytes_of_scale = reinterpret_cast<const std::byte*>(&scale);
        all.insert(all.end(), bytes_of_scale, bytes_of_scale + sizeof scale);
      }
      // E4M3 of 0.25 to 4.
      for (int64_t i = 0; i < bytes; ++i) all.push_back(static_cast<std::byte>(40 + random() % 32));
      continue;
    }
    for (int64_t i = 0; i < halves; ++i) {
      // Halves of about 2^-10, or 2^-14 where a byte multiplies them.
      const uint32_t fraction = form.powers ? 0 : random() & 1023u;
      const uint32_t exponent = form.powers ? 4 + random() % 3 : is_super ? 1 : 5;
      const auto half = static_cast<uint16_t>(exponent << 10 | fraction);
      all.push_back(static_cast<std::byte>(half & 255));
      all.push_back(static_cast<std::byte>(half >> 8));
    }
    const uint32_t most = form.scale == GroupScale::kSuperSigned ? 255
                          : form.scale == GroupScale::kSuper     ? 63
                                                                 : 15;
    for (int64_t i = 0; i < bytes; ++i) all.push_back(static_cast<std::byte>(random() & most));
  }
  return all;
}

// Their floats.
inline std::vector<float> dequantized(const QuantForm& form, const std::vector<std::byte>& rows,
                                      int64_t k) {
  const auto row_bytes = static_cast<size_t>(quantized_row_bytes(form, k));
  std::vector<float> floats(rows.size() / row_bytes * static_cast<size_t>(k));
  for (size_t row = 0; row < rows.size() / row_bytes; ++row) {
    dequantize_row(form, rows.data() + row * row_bytes, k,
                   floats.data() + row * static_cast<size_t>(k));
  }
  return floats;
}

}  // namespace foretoken
