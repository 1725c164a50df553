#include "model/files/forms/scaled_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "base/bfloat16.h"
#include "base/float8.h"
#include "base/microscaling.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "model/files/forms/quantized_tensor.h"
#include "model/files/forms/scaled_file.h"
#include "support/folders.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Codes 0, 1, 2, ... without those of NaN.
std::string fp8_codes(int64_t count) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) bytes += static_cast<char>(i * 7 % 256 % 127);
  return bytes;
}

std::vector<float> scaled_elements(const TensorView& tensor, int64_t first, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::vector<std::byte> raw;
  const Status status = read_elements(tensor, first, count, DType::kF32, values.data(), raw);
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

// Blocks of 4 x 8 that end before the matrix does, scales of rows, and one of the tensor; whole and
// in pieces that begin and end inside rows.
TEST(ScaledTensor, ScalesOfBlocksRowsAndTensors) {
  constexpr int64_t kMatrixRows = 10, kMatrixCols = 20;
  std::vector<float> blocks, rows;
  for (int i = 0; i < 9; ++i) blocks.push_back(0.25f * static_cast<float>(i + 1));
  for (int i = 0; i < kMatrixRows; ++i) rows.push_back(0.5f * static_cast<float>(i + 1));
  ScaledFile file;
  for (const char* name : {"a", "b", "c", "d"}) {
    file.add(std::string(name) + ".weight", "F8_E4M3", {kMatrixRows, kMatrixCols},
             fp8_codes(kMatrixRows * kMatrixCols));
  }
  file.add_floats("a.weight_scale_inv", {3, 3}, blocks);
  file.add_floats("b.weight_scale", {kMatrixRows, 1}, rows);
  file.add_floats("c.weight_scale", {}, {3});
  file.add_floats("c.input_scale", {}, {9});
  file.add_floats("d.weight_scale", {kMatrixRows}, rows);
  file.add_floats("norm.weight", {2}, {1, 2});
  const test::ScratchFolder folder;
  const auto checkpoint =
      open_scaled(folder, file, {{"quant_method", "fp8"}, {"weight_block_size", {4, 8}}});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ(checkpoint.value().tensors().size(), 5u);
  const std::string raw = fp8_codes(kMatrixRows * kMatrixCols);
  for (const std::string name : {"a", "b", "c", "d"}) {
    const TensorView& tensor = *checkpoint.value().find(name + ".weight").value();
    std::vector<float> wanted;
    for (int64_t i = 0; i < kMatrixRows * kMatrixCols; ++i) {
      const int64_t row = i / kMatrixCols, col = i % kMatrixCols;
      const float scale = name == "a"   ? blocks[size_t(row / 4 * 3 + col / 8)]
                          : name == "c" ? 3
                                        : rows[size_t(row)];
      wanted.push_back(e4m3_value(static_cast<uint8_t>(raw[size_t(i)])) * scale);
    }
    EXPECT_EQ(scaled_elements(tensor, 0, kMatrixRows * kMatrixCols), wanted) << name;
    for (int64_t first = 0; first < kMatrixRows * kMatrixCols; first += 37) {
      const int64_t count = std::min<int64_t>(37, kMatrixRows * kMatrixCols - first);
      ASSERT_EQ(scaled_elements(tensor, first, count),
                std::vector<float>(wanted.begin() + first, wanted.begin() + first + count))
          << name << " from " << first;
    }
    std::vector<uint16_t> bits(wanted.size());
    std::vector<std::byte> scratch;
    ASSERT_TRUE(
        read_elements(tensor, 0, kMatrixRows * kMatrixCols, DType::kBF16, bits.data(), scratch)
            .ok());
    for (size_t i = 0; i < bits.size(); ++i) ASSERT_EQ(bits[i], bf16_from_float(wanted[i]));
  }
}

// Experts in one tensor, whose blocks end with each.
TEST(ScaledTensor, StacksOfMatrices) {
  ScaledFile file;
  file.add("x.weight", "F8_E4M3", {2, 4, 8}, fp8_codes(64));
  file.add_floats("x.weight_scale_inv", {2, 1, 2}, {1, 2, 3, 4});
  const test::ScratchFolder folder;
  const auto checkpoint =
      open_scaled(folder, file, {{"quant_method", "fp8"}, {"weight_block_size", {4, 4}}});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const auto values = scaled_elements(*checkpoint.value().find("x.weight").value(), 0, 64);
  const std::string raw = fp8_codes(64);
  for (size_t i = 0; i < 64; ++i) {
    const float scale = static_cast<float>(i / 32 * 2 + i % 8 / 4 + 1);
    EXPECT_EQ(values[i], e4m3_value(static_cast<uint8_t>(raw[i])) * scale) << i;
  }
}

// A checkpoint of one matrix [rows, cols] of codes and the tensors beside it.
struct CodesFile {
  CodesFile(const std::string& name, const std::string& dtype, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows * cols; ++i) bytes += static_cast<char>(i * 73 % 251);
    file.add(name, dtype, {rows, cols}, bytes);
  }
  uint8_t byte(int64_t i) const { return static_cast<uint8_t>(bytes[static_cast<size_t>(i)]); }
  // Of floats of four bits.
  float value(int64_t i) const {
    return e2m1_value(i % 2 == 0 ? byte(i / 2) & 15 : byte(i / 2) >> 4);
  }

  std::string bytes;
  ScaledFile file;
};

// Wanted values of the matrix "x.weight", whole and from odd places on.
void expect_elements(const Result<Checkpoint>& checkpoint, const std::vector<float>& wanted) {
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const TensorView& tensor = *checkpoint.value().find("x.weight").value();
  const auto count = std::ssize(wanted);
  ASSERT_EQ(tensor.num_elements(), count);
  EXPECT_EQ(scaled_elements(tensor, 0, count), wanted);
  for (int64_t first = 0; first < count; first += 23) {
    const int64_t here = std::min<int64_t>(23, count - first);
    ASSERT_EQ(scaled_elements(tensor, first, here),
              std::vector<float>(wanted.begin() + first, wanted.begin() + first + here))
        << "from " << first;
  }
  EXPECT_EQ(checkpoint.value().tensors().size(), 1u);
}

// The codes of E4M3 scales 1, 1.125, 1.25, ...
std::string e4m3_scales(int64_t count) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) bytes += static_cast<char>(0x38 + i);
  return bytes;
}

// ModelOpt multiplies scales of 16 by a second one; compressed-tensors divides by it.
TEST(ScaledTensor, Nvfp4) {
  constexpr int64_t kMatrixRows = 3, kMatrixCols = 32;
  for (const bool divides : {false, true}) {
    CodesFile made(divides ? "x.weight_packed" : "x.weight", "U8", kMatrixRows, kMatrixCols / 2);
    made.file.add("x.weight_scale", "F8_E4M3", {kMatrixRows, kMatrixCols / 16}, e4m3_scales(6));
    made.file.add_floats(divides ? "x.weight_global_scale" : "x.weight_scale_2", {1}, {0.3f});
    made.file.add_floats(divides ? "x.input_global_scale" : "x.input_scale", {1}, {7});
    std::vector<float> wanted;
    for (int64_t i = 0; i < kMatrixRows * kMatrixCols; ++i) {
      const float scale = 1 + 0.125f * static_cast<float>(i / 16);
      wanted.push_back(made.value(i) * (divides ? scale / 0.3f : scale * 0.3f));
    }
    const test::ScratchFolder folder;
    expect_elements(
        open_scaled(folder, made.file, {{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}}),
        wanted);
  }
}

// ModelOpt's W4A8_NVFP4_FP8 has a scale for 32 columns.
TEST(ScaledTensor, Nvfp4OfLongerGroups) {
  constexpr int64_t kMatrixRows = 3, kMatrixCols = 64;
  CodesFile made("x.weight", "U8", kMatrixRows, kMatrixCols / 2);
  made.file.add("x.weight_scale", "F8_E4M3", {kMatrixRows, kMatrixCols / 32}, e4m3_scales(6));
  made.file.add_floats("x.weight_scale_2", {}, {0.3f});
  std::vector<float> wanted;
  for (int64_t i = 0; i < kMatrixRows * kMatrixCols; ++i) {
    wanted.push_back(made.value(i) * ((1 + 0.125f * static_cast<float>(i / 32)) * 0.3f));
  }
  const test::ScratchFolder folder;
  expect_elements(open_scaled(folder, made.file,
                              {{"quant_method", "modelopt"}, {"quant_algo", "W4A8_NVFP4_FP8"}}),
                  wanted);
}

// Experts whose inputs are rows, as ModelOpt packs gpt-oss's and Llama 4's: two rows share bytes,
// 16 a scale.
TEST(ScaledTensor, Nvfp4OfPairedRows) {
  constexpr int64_t kStack = 2, kStackRows = 32, kStackCols = 6;
  CodesFile made("unused", "U8", 0, 0);
  for (int64_t i = 0; i < kStack * kStackRows / 2 * kStackCols; ++i) {
    made.bytes += static_cast<char>(i * 73 % 251);
  }
  ScaledFile file;
  file.add("x.weight", "U8", {kStack, kStackRows / 2, kStackCols}, made.bytes);
  file.add("x.weight_scale", "F8_E4M3", {kStack, kStackRows / 16, kStackCols}, e4m3_scales(24));
  file.add_floats("x.weight_scale_2", {}, {0.3f});
  std::vector<float> wanted;
  for (int64_t i = 0; i < kStack * kStackRows * kStackCols; ++i) {
    const int64_t row = i / kStackCols, col = i % kStackCols;
    const uint8_t pair = made.byte(row / 2 * kStackCols + col);
    const auto scale = static_cast<uint8_t>(0x38 + row / 16 * kStackCols + col);
    wanted.push_back(e2m1_value(row % 2 == 0 ? pair & 15 : pair >> 4) * (e4m3_value(scale) * 0.3f));
  }
  const test::ScratchFolder folder;
  const auto checkpoint =
      open_scaled(folder, file, {{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}});
  expect_elements(checkpoint, wanted);
  const TensorView& tensor = *checkpoint.value().find("x.weight").value();
  EXPECT_EQ(tensor.shape, (std::vector<int64_t>{kStack, kStackRows, kStackCols}));
  EXPECT_EQ(quantized_form(tensor), nullptr);
}

Json compressed(const std::string& format, const Json& weights) {
  return {{"quant_method", "compressed-tensors"},
          {"format", format},
          {"config_groups", {{"group_0", {{"weights", weights}, {"targets", {"Linear"}}}}}}};
}

// A row of quantised elements as floats.
std::vector<float> kept_row(const TensorView& tensor, int64_t row) {
  const QuantForm& form = *quantized_form(tensor);
  const int64_t k = tensor.shape.back();
  std::vector<std::byte> bytes(static_cast<size_t>(quantized_row_bytes(form, k))), raw;
  EXPECT_TRUE(read_quantized_rows(tensor, row, 1, bytes.data(), raw).ok());
  std::vector<float> values(static_cast<size_t>(k));
  dequantize_row(form, bytes.data(), k, values.data());
  return values;
}

void expect_kept(const Result<Checkpoint>& checkpoint, const QuantForm& form) {
  const TensorView& tensor = *checkpoint.value().find("x.weight").value();
  ASSERT_NE(quantized_form(tensor), nullptr);
  EXPECT_EQ(*quantized_form(tensor), form);
  const int64_t k = tensor.shape.back();
  for (int64_t row = 0; row < tensor.shape[0]; ++row) {
    EXPECT_EQ(kept_row(tensor, row), scaled_elements(tensor, row * k, k)) << row;
  }
}

TEST(ScaledTensor, Mxfp4StaysAtFourBitsWhereScalesAreHalves) {
  constexpr int64_t kMatrixRows = 2, kMatrixCols = 64;
  CodesFile made("x.weight_packed", "U8", kMatrixRows, kMatrixCols / 2);
  const std::string exponents = {120, 127, 126, 113};
  made.file.add("x.weight_scale", "U8", {kMatrixRows, kMatrixCols / 32}, exponents);
  std::vector<float> wanted;
  for (int64_t i = 0; i < kMatrixRows * kMatrixCols; ++i) {
    wanted.push_back(made.value(i) * std::ldexp(1.0f, exponents[size_t(i / 32)] - 127));
  }
  const test::ScratchFolder folder;
  const auto checkpoint =
      open_scaled(folder, made.file,
                  compressed("mxfp4-pack-quantized",
                             {{"num_bits", 4}, {"type", "float"}, {"strategy", "group"}}));
  expect_elements(checkpoint, wanted);
  expect_kept(checkpoint, {4, GroupScale::kHalf, 32, CodeTable::kE2m1, true});
}

TEST(ScaledTensor, ScalesThatAreNoHalvesAreWidened) {
  CodesFile made("x.weight_packed", "U8", 1, 16);
  made.file.add("x.weight_scale", "U8", {1, 1}, std::string(1, 60));
  const test::ScratchFolder folder;
  const auto checkpoint = open_scaled(
      folder, made.file, compressed("mxfp4-pack-quantized", {{"num_bits", 4}, {"type", "float"}}));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const TensorView& tensor = *checkpoint.value().find("x.weight").value();
  EXPECT_EQ(quantized_form(tensor), nullptr);
  EXPECT_EQ(scaled_elements(tensor, 0, 1)[0], made.value(0) * std::ldexp(1.0f, 60 - 127));
}

// One scale a row, for 32 columns each in memory; symmetric, and with zeros.
TEST(ScaledTensor, IntegersOfEightBits) {
  constexpr int64_t kMatrixRows = 3, kMatrixCols = 64;
  for (const bool has_zeros : {false, true}) {
    CodesFile made("x.weight", "I8", kMatrixRows, kMatrixCols);
    const std::vector<float> scales = {0.5f, 0.01171875f, 2};
    const std::string zeros = {3, -128, 127};
    made.file.add_floats("x.weight_scale", {kMatrixRows, 1}, scales);
    if (has_zeros) made.file.add("x.weight_zero_point", "I8", {kMatrixRows, 1}, zeros);
    std::vector<float> wanted;
    for (int64_t i = 0; i < kMatrixRows * kMatrixCols; ++i) {
      const auto row = static_cast<size_t>(i / kMatrixCols);
      const int zero = has_zeros ? static_cast<int8_t>(zeros[row]) : 0;
      wanted.push_back(static_cast<float>(static_cast<int8_t>(made.byte(i)) - zero) * scales[row]);
    }
    const test::ScratchFolder folder;
    const auto checkpoint = open_scaled(
        folder, made.file,
        compressed("int-quantized", {{"num_bits", 8}, {"type", "int"}, {"strategy", "channel"}}));
    expect_elements(checkpoint, wanted);
    expect_kept(checkpoint, {8, has_zeros ? GroupScale::kHalfAndZero : GroupScale::kHalf, 32});
  }
}

// Llama 4's experts, whose outputs are columns.
// Byte row r has rows r, r + 2, r + 4 and r + 6, as transformers packs them; the scale of an older
// kind divides.
TEST(ScaledTensor, TernaryCodesOfBitNet) {
  constexpr int64_t kTernaryRows = 8, kTernaryCols = 32;
  const auto code = [](int64_t row, int64_t col) { return (row * 5 + col * 7) % 3; };
  std::string bytes;
  for (int64_t r = 0; r < kTernaryRows / 4; ++r) {
    for (int64_t c = 0; c < kTernaryCols; ++c) {
      int64_t byte = 0;
      for (int64_t q = 0; q < 4; ++q) byte |= code(r + q * kTernaryRows / 4, c) << (2 * q);
      bytes += static_cast<char>(byte);
    }
  }
  for (const bool older : {false, true}) {
    test::ScratchFolder folder;
    ScaledFile file;
    file.add("q_proj.weight", "U8", {kTernaryRows / 4, kTernaryCols}, bytes);
    file.add_floats("q_proj.weight_scale", {1}, {0.5F});
    const auto checkpoint = open_scaled(folder, file,
                                        {{"quant_method", "bitnet"},
                                         {"linear_class", older ? "bitlinear" : "autobitlinear"},
                                         {"quantization_mode", "offline"}});
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    const TensorView& tensor = *checkpoint.value().find("q_proj.weight").value();
    EXPECT_EQ(tensor.shape, (std::vector<int64_t>{kTernaryRows, kTernaryCols}));
    const auto values = scaled_elements(tensor, 0, kTernaryRows * kTernaryCols);
    for (int64_t i = 0; i < kTernaryRows * kTernaryCols; ++i) {
      const auto want =
          static_cast<float>(code(i / kTernaryCols, i % kTernaryCols) - 1) * (older ? 2.0F : 0.5F);
      ASSERT_EQ(values[static_cast<size_t>(i)], want) << i;
    }
    const auto some = scaled_elements(tensor, kTernaryCols + 5, 3 * kTernaryCols);
    for (size_t i = 0; i < some.size(); ++i) ASSERT_EQ(some[i], values[i + kTernaryCols + 5]) << i;
    ASSERT_NE(quantized_form(tensor), nullptr);
    std::vector<std::byte> rows(size_t(kTernaryRows) *
                                quantized_row_bytes(*quantized_form(tensor), kTernaryCols));
    std::vector<std::byte> raw;
    ASSERT_TRUE(read_quantized_rows(tensor, 0, kTernaryRows, rows.data(), raw).ok());
    EXPECT_EQ(static_cast<int>(rows[1]) - 128, code(0, 1) - 1);
  }
}

TEST(ScaledTensor, ScalesOfColumns) {
  ScaledFile file;
  file.add("experts.gate_up_proj", "F8_E4M3", {2, 3, 4}, fp8_codes(24));
  file.add_floats("experts.gate_up_proj_scale", {2, 1, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const test::ScratchFolder folder;
  const auto checkpoint = open_scaled(folder, file, {{"quant_method", "fbgemm_fp8"}});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const auto values =
      scaled_elements(*checkpoint.value().find("experts.gate_up_proj").value(), 0, 24);
  const std::string raw = fp8_codes(24);
  for (size_t i = 0; i < 24; ++i) {
    const float scale = static_cast<float>(i / 12 * 4 + i % 4 + 1);
    EXPECT_EQ(values[i], e4m3_value(static_cast<uint8_t>(raw[i])) * scale) << i;
  }
}

// Groups of a row, exponents as scales (MXFP8), and ModelOpt's blocks with dimensions of one.
TEST(ScaledTensor, OtherFormsOfScales) {
  ScaledFile file;
  for (const char* name : {"a", "b", "c"}) {
    file.add(std::string(name) + ".weight", "F8_E4M3", {2, 64}, fp8_codes(128));
  }
  file.add_floats("a.weight_scale", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  file.add("b.weight_scale", "F8_E8M0", {2, 2}, std::string({127, 126, 125, 127}));
  file.add_floats("c.weight_scale", {1, 1, 1, 1}, {3});
  const test::ScratchFolder folder;
  const auto checkpoint =
      open_scaled(folder, file, {{"quant_method", "modelopt"}, {"quant_algo", "MXFP8"}});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const std::string raw = fp8_codes(128);
  const float powers[] = {1, 0.5f, 0.25f, 1};
  for (const std::string name : {"a", "b", "c"}) {
    const auto values = scaled_elements(*checkpoint.value().find(name + ".weight").value(), 0, 128);
    for (size_t i = 0; i < 128; ++i) {
      const float scale = name == "a"   ? static_cast<float>(i / 16 + 1)
                          : name == "b" ? powers[i / 32]
                                        : 3;
      ASSERT_EQ(values[i], e4m3_value(static_cast<uint8_t>(raw[i])) * scale) << name << i;
    }
  }
}

TEST(ScaledTensor, WhatDoesNotFitIsNamed) {
  const auto message = [](const std::vector<int64_t>& shape, const Json& quantization) {
    ScaledFile file;
    file.add("x.weight", "F8_E4M3", {8, 8}, fp8_codes(64));
    if (!shape.empty()) {
      int64_t count = 1;
      for (const int64_t size : shape) count *= size;
      file.add_floats("x.weight_scale_inv", shape, std::vector<float>(size_t(count), 1));
    }
    const test::ScratchFolder folder;
    const auto checkpoint = open_scaled(folder, file, quantization);
    EXPECT_FALSE(checkpoint.ok());
    return checkpoint.status().message();
  };
  const Json blocks = {{"quant_method", "fp8"}, {"weight_block_size", {4, 4}}};
  EXPECT_NE(message({}, blocks).find("'x.weight' lacks its scales"), std::string::npos);
  EXPECT_NE(message({3, 2}, blocks).find("no scales of 'x.weight' of shape [8, 8]"),
            std::string::npos);
  EXPECT_NE(message({2, 2}, {{"quant_method", "fp8"}}).find("no scales"), std::string::npos);
  EXPECT_NE(message({2, 2}, nullptr).find("'quantization_config' is missing"), std::string::npos);
  EXPECT_NE(message({2, 2}, {{"quant_method", "fp8"}, {"fmt", "e3m4"}}).find("fmt e3m4"),
            std::string::npos);
}

// Each message names the tensor at fault.
TEST(ScaledTensor, PartsThatDoNotFitAreNamed) {
  const auto message = [](const std::function<void(ScaledFile&)>& add) {
    CodesFile made("x.weight", "I8", 4, 32);
    add(made.file);
    const test::ScratchFolder folder;
    const auto checkpoint = open_scaled(
        folder, made.file, compressed("int-quantized", {{"num_bits", 8}, {"type", "int"}}));
    EXPECT_FALSE(checkpoint.ok());
    return checkpoint.ok() ? "" : checkpoint.status().message();
  };
  EXPECT_NE(message([](ScaledFile& file) {
              file.add_floats("x.weight_scale", {4, 1}, {1, 1, 1, 1});
              file.add("x.weight_zero_point", "I8", {1}, "0");
            }).find("'x.weight_zero_point' is I8 [1]"),
            std::string::npos);
  EXPECT_NE(message([](ScaledFile& file) {
              file.add("x.weight_scale", "I32", {1}, "0000");
            }).find("'x.weight_scale' has dtype I32"),
            std::string::npos);
  EXPECT_NE(message([](ScaledFile& file) {
              file.add_floats("x.weight_scale", {1}, {1});
              file.add_floats("x.weight_scale_2", {2}, {1, 1});
            }).find("'x.weight_scale_2' has shape [2]"),
            std::string::npos);
  EXPECT_NE(message([](ScaledFile& file) {
              file.add_floats("x.weight_scale", {3, 1}, {1, 1, 1});
            }).find("no scales of 'x.weight'"),
            std::string::npos);
}

TEST(ScaledTensor, AScaleToDivideByIsNotZero) {
  CodesFile made("x.weight_packed", "U8", 1, 8);
  made.file.add("x.weight_scale", "F8_E4M3", {1, 1}, e4m3_scales(1));
  made.file.add_floats("x.weight_global_scale", {1}, {0});
  const test::ScratchFolder folder;
  const auto checkpoint = open_scaled(
      folder, made.file, compressed("nvfp4-pack-quantized", {{"num_bits", 4}, {"type", "float"}}));
  ASSERT_FALSE(checkpoint.ok());
  EXPECT_NE(checkpoint.status().message().find("'x.weight_global_scale' is 0"), std::string::npos);
}

// What numpy and torch make of codes and scales, bit for bit.
class GoldenFormats : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenFormats, AreReadExactly) {
  const std::string name = GetParam(), folder = kSourceFolder + ("/tests/golden/quantised/" + name);
  const auto checkpoint = Checkpoint::open(folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  ASSERT_EQ(checkpoint.value().tensors().size(), 1u);
  const TensorView& tensor = *checkpoint.value().find("m.weight").value();
  const auto file = SafetensorsFile::open(folder + "/expected.safetensors").value();
  const TensorView& expected = file->tensors().at("m.weight");
  ASSERT_EQ(tensor.shape, expected.shape);
  EXPECT_EQ(scaled_elements(tensor, 0, tensor.num_elements()),
            scaled_elements(expected, 0, tensor.num_elements()));
  // The last blocks of fp8-blocks are not whole.
  const std::set<std::string> kept = {"fp8-channel",    "fp8-tensor",       "mxfp4", "int8",
                                      "nvfp4-modelopt", "nvfp4-compressed", "mixed"};
  ASSERT_EQ(quantized_form(tensor) != nullptr, kept.contains(name));
  if (!kept.contains(name)) return;
  const int64_t k = tensor.shape.back();
  // The two scales of NVFP4 are one there, which is rounded before the codes are multiplied by it.
  const float most = name.starts_with("nvfp4") ? 0x1p-22f : 0;
  for (int64_t row = 0; row < tensor.shape[0]; ++row) {
    const std::vector<float> own = kept_row(tensor, row);
    const std::vector<float> wanted = scaled_elements(expected, row * k, k);
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(own[i], wanted[i], most * std::abs(wanted[i])) << row << ", " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, GoldenFormats,
                         ::testing::Values("fp8-blocks", "fp8-channel", "fp8-tensor",
                                           "nvfp4-modelopt", "nvfp4-compressed", "mxfp4", "int8",
                                           "mixed"));

}  // namespace
}  // namespace foretoken
