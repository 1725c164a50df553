#include "kernels/rows/cpu/table_row.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/bfloat16.h"
#include "base/half.h"
#include "kernels/quant/cpu/quant_matrix.h"
#include "support/quant_data.h"

namespace foretoken::cpu {
namespace {

// Every half there is, in rows of 37, each by itself and sixteen that alternate.
TEST(TableRow, HalvesHaveTheBitsOfTheirFloats) {
  constexpr int kN = 37, kTogether = 16;
  constexpr int64_t kRows = (65536 / kN / kTogether + 1) * kTogether;
  std::vector<uint16_t> plain(kRows * kN), packed(plain.size());
  for (size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<uint16_t>(i);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t j = 0; j < kN; ++j) {
      const int64_t at = (row / kTogether * kN + j) * kTogether + row % kTogether;
      packed[static_cast<size_t>(at)] = plain[static_cast<size_t>(row * kN + j)];
    }
  }
  std::vector<float> floats(kN), got(kN);
  for (int64_t row = 0; row < kRows; ++row) {
    const float scale = row % 2 == 0 ? 1.0f : 25.3f;
    for (int j = 0; j < kN; ++j) {
      floats[static_cast<size_t>(j)] = half_to_float(plain[static_cast<size_t>(row * kN + j)]);
    }
    std::vector<float> want(kN);
    read_table_row({floats.data(), DType::kF32}, 0, kN, scale, want.data());
    for (const RowTable& table :
         {RowTable{plain.data(), DType::kF16}, RowTable{packed.data(), DType::kF16, kTogether}}) {
      read_table_row(table, row, kN, scale, got.data());
      ASSERT_EQ(std::memcmp(got.data(), want.data(), kN * sizeof(float)), 0) << row;
    }
  }
}

// Rounded as a table of that type would be.
TEST(TableRow, QuantizedRowsHaveTheBitsOfATable) {
  constexpr int kN = 512, kRows = 40;
  for (const QuantForm& form : quant_forms()) {
    const auto rows = random_quantized_rows(form, kRows, kN, 7);
    const QuantizedPart part{form, kRows};
    QuantMatrix matrix({&part, 1}, kN, kRows);
    matrix.pack_slice(0, rows.data());
    const std::vector<float> floats = dequantized(form, rows, kN);
    std::vector<uint16_t> rounded(floats.size());
    for (size_t i = 0; i < floats.size(); ++i) rounded[i] = bf16_from_float(floats[i]);
    std::vector<float> want(kN), got(kN);
    const RowTable tables[] = {{floats.data(), DType::kF32}, {rounded.data(), DType::kBF16}};
    for (const RowTable& table : tables) {
      for (int64_t row = 0; row < kRows; ++row) {
        read_table_row(table, row, kN, 25.3f, want.data());
        read_table_row({&matrix, table.dtype, 1, true}, row, kN, 25.3f, got.data());
        ASSERT_EQ(std::memcmp(got.data(), want.data(), kN * sizeof(float)), 0) << row;
      }
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu
