#include "base/quantized_rows.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken {
namespace {

std::byte byte(int value) { return static_cast<std::byte>(value); }

TEST(QuantizedRows, Sizes) {
  const QuantForm q8{8, GroupScale::kHalf, 32}, awq{4, GroupScale::kHalfAndZero, 128};
  const QuantForm q4_k{4, GroupScale::kSuper, 32}, q6_k{6, GroupScale::kSuperSigned, 16};
  EXPECT_EQ(quantized_row_bytes(q8, 64), 64 + 2 * 2);
  EXPECT_EQ(quantized_row_bytes(awq, 256), 256 + 2 * 2 + 2);
  EXPECT_EQ(quantized_row_bytes(q4_k, 512), 512 + 2 * 4 + 2 * 16);
  EXPECT_EQ(quantized_row_bytes(q6_k, 512), 512 + 2 * 2 + 32);
  const QuantForm by_row{8, GroupScale::kFloatOfRow, 1, CodeTable::kE4m3};
  const QuantForm by_group{8, GroupScale::kFloat, 128, CodeTable::kE4m3};
  EXPECT_EQ(quantized_row_bytes(by_row, 100), 100 + 4);
  EXPECT_EQ(quantized_row_bytes(by_group, 256), 256 + 2 * 4);
  EXPECT_EQ(packed_row_bytes(by_group, 256), 256 + 2 * 4);
  const QuantForm nvfp4{4, GroupScale::kRowAndByte, 16, CodeTable::kE2m1};
  EXPECT_EQ(quantized_row_bytes(nvfp4, 256), 256 + 4 + 16);
  EXPECT_EQ(packed_row_bytes(nvfp4, 256), 128 + 4 + 16);
  EXPECT_FALSE(fits_row(nvfp4, 24));
  EXPECT_TRUE(fits_row(by_row, 100));
  EXPECT_FALSE(fits_row(by_group, 192));
  EXPECT_TRUE(fits_row(q8, 96));
  EXPECT_FALSE(fits_row(q8, 40));
  EXPECT_FALSE(fits_row(awq, 192));
  EXPECT_FALSE(fits_row(q4_k, 128));
  EXPECT_FALSE(fits_row(q6_k, 0));
}

// Each half of a row as a row of its own has the values of that half.
TEST(QuantizedRows, CutRowsKeepTheirValues) {
  constexpr int64_t kK = 1024, kHalf = kK / 2;
  for (const QuantForm& form :
       {QuantForm{8, GroupScale::kHalf, 32}, QuantForm{4, GroupScale::kHalfAndZero, 128},
        QuantForm{4, GroupScale::kSuper, 32}, QuantForm{6, GroupScale::kSuperSigned, 16},
        QuantForm{5, GroupScale::kHalfAndMinimum, 32}, QuantForm{16, GroupScale::kNone, 1},
        QuantForm{8, GroupScale::kFloat, 128, CodeTable::kE4m3},
        QuantForm{8, GroupScale::kFloatOfRow, 1, CodeTable::kE4m3},
        QuantForm{4, GroupScale::kRowAndByte, 16, CodeTable::kE2m1}}) {
    std::vector<std::byte> row(static_cast<size_t>(quantized_row_bytes(form, kK)));
    // Bytes below 0x78 make halves that are numbers.
    for (size_t i = 0; i < row.size(); ++i) row[i] = byte(static_cast<int>(i * 37 % 0x78));
    // Codes of a table have as many values as the table.
    for (size_t i = 0; i < kK && form.bits == 4; ++i) row[i] &= byte(15);
    std::vector<float> whole(kK), part(kHalf);
    dequantize_row(form, row.data(), kK, whole.data());
    for (const int64_t first : {int64_t{0}, kHalf}) {
      std::vector<std::byte> cut(static_cast<size_t>(quantized_row_bytes(form, kHalf)));
      cut_quantized_row(form, row.data(), {kK, first, kHalf}, cut.data());
      dequantize_row(form, cut.data(), kHalf, part.data());
      EXPECT_EQ(part, std::vector<float>(whole.begin() + first, whole.begin() + first + kHalf));
    }
    // The first and the third quarter of the row.
    const ColumnRange pieces{kK, 0, kHalf, 2, kHalf};
    std::vector<std::byte> cut(static_cast<size_t>(quantized_row_bytes(form, kHalf)));
    cut_quantized_row(form, row.data(), pieces, cut.data());
    dequantize_row(form, cut.data(), kHalf, part.data());
    for (int64_t i = 0; i < kHalf; ++i) {
      EXPECT_EQ(part[static_cast<size_t>(i)], whole[static_cast<size_t>(pieces.source_of(i))]);
    }
  }
}

TEST(QuantizedRows, ValuesOfEveryScale) {
  std::vector<float> out(256);
  // Codes 0, 1, 2, ... with a scale of 1/2, for which the half is 0x3800.
  std::vector<std::byte> row(32);
  for (int i = 0; i < 32; ++i) row[static_cast<size_t>(i)] = byte(i % 16);
  row.insert(row.end(), {byte(0), byte(0x38)});
  dequantize_row({8, GroupScale::kHalf, 32}, row.data(), 32, out.data());
  EXPECT_EQ(out[3], 0.5F * (3 - 128));
  dequantize_row({4, GroupScale::kHalf, 32}, row.data(), 32, out.data());
  EXPECT_EQ(out[3], 0.5F * (3 - 8));
  row.push_back(byte(5));
  dequantize_row({4, GroupScale::kHalfAndZero, 32}, row.data(), 32, out.data());
  EXPECT_EQ(out[3], 0.5F * (3 - 5));

  // d = 1/2 and m = 2, then scales 10, 11, ... and minima 20, 21, ...
  row.assign(256, byte(7));
  row.insert(row.end(), {byte(0), byte(0x38), byte(0), byte(0x40)});
  for (int i = 0; i < 16; ++i) row.push_back(byte(i < 8 ? 10 + i : 12 + i));
  dequantize_row({4, GroupScale::kSuper, 32}, row.data(), 256, out.data());
  EXPECT_EQ(out[40], 0.5F * 11 * 7 - 2.0F * 21);

  row.assign(256, byte(33));
  row.insert(row.end(), {byte(0), byte(0x38)});
  for (int i = 0; i < 16; ++i) row.push_back(byte(254));
  dequantize_row({6, GroupScale::kSuperSigned, 16}, row.data(), 256, out.data());
  EXPECT_EQ(out[255], 0.5F * -2 * (33 - 32));
}

// E4M3's 0x39 is 1.125, 0xc4 is -3.
TEST(QuantizedRows, FloatsOfEightBits) {
  const auto add = [](std::vector<std::byte>& row, float scale) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&scale);
    row.insert(row.end(), bytes, bytes + sizeof scale);
  };
  std::vector<float> out(256);
  std::vector<std::byte> row(256, byte(0x39));
  row[200] = byte(0xc4);
  std::vector<std::byte> blocks = row;
  add(row, 0.1F);
  dequantize_row({8, GroupScale::kFloatOfRow, 1, CodeTable::kE4m3}, row.data(), 256, out.data());
  EXPECT_EQ(out[0], 0.1F * 1.125F);
  EXPECT_EQ(out[200], 0.1F * -3.0F);
  add(blocks, 2.0F);
  add(blocks, 3.0F);
  dequantize_row({8, GroupScale::kFloat, 128, CodeTable::kE4m3}, blocks.data(), 256, out.data());
  EXPECT_EQ(out[127], 2.0F * 1.125F);
  EXPECT_EQ(out[200], 3.0F * -3.0F);

  // The twelfth code of E2M1 is -2, which is kept doubled.
  std::vector<std::byte> fours(32, byte(12));
  add(fours, 0.1F);
  fours.push_back(byte(0x39));
  fours.push_back(byte(0xc4));
  dequantize_row({4, GroupScale::kRowAndByte, 16, CodeTable::kE2m1}, fours.data(), 32, out.data());
  EXPECT_EQ(out[0], 0.1F * (1.125F * -4.0F));
  EXPECT_EQ(out[31], 0.1F * (-3.0F * -4.0F));
}

}  // namespace
}  // namespace foretoken
