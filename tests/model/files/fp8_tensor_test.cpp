#include "model/files/fp8_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/bfloat16.h"
#include "model/files/checkpoint.h"
#include "model/files/convert.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// A safetensors file of tensors by name, added in the order of their bytes.
class Fp8File {
 public:
  void add(const std::string& name, const std::string& dtype, const std::vector<int64_t>& shape,
           const std::string& bytes) {
    header_[name] = {{"dtype", dtype},
                     {"shape", shape},
                     {"data_offsets", {data_.size(), data_.size() + bytes.size()}}};
    data_ += bytes;
  }
  void add_floats(const std::string& name, const std::vector<int64_t>& shape,
                  const std::vector<float>& values) {
    std::string bytes(values.size() * 4, 0);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    add(name, "F32", shape, bytes);
  }
  std::string text() const {
    std::string header = header_.dump();
    while (header.size() % 8 != 0) header += ' ';
    const uint64_t size = header.size();
    std::string all(8, 0);
    std::memcpy(all.data(), &size, 8);
    return all + header + data_;
  }

 private:
  Json header_ = Json::object();
  std::string data_;
};

// Codes 0, 1, 2, ... without those of NaN.
std::string fp8_codes(int64_t count) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) bytes += static_cast<char>(i * 7 % 256 % 127);
  return bytes;
}

Result<Checkpoint> open_fp8(const test::ScratchFolder& folder, const Fp8File& file,
                            const Json& quantization) {
  folder.write("config.json", Json{{"quantization_config", quantization}}.dump());
  folder.write("model.safetensors", file.text());
  return Checkpoint::open(folder.path());
}

std::vector<float> fp8_elements(const TensorView& tensor, int64_t first, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::vector<std::byte> raw;
  const Status status = read_elements(tensor, first, count, DType::kF32, values.data(), raw);
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

TEST(Fp8Tensor, CodesAreThoseOfE4M3) {
  EXPECT_EQ(fp8_value(0x00), 0.0f);
  EXPECT_EQ(fp8_value(0x01), std::ldexp(1.0f, -9));
  EXPECT_EQ(fp8_value(0x07), std::ldexp(7.0f, -9));
  EXPECT_EQ(fp8_value(0x08), std::ldexp(1.0f, -6));
  EXPECT_EQ(fp8_value(0x38), 1.0f);
  EXPECT_EQ(fp8_value(0x3b), 1.375f);
  EXPECT_EQ(fp8_value(0xb8), -1.0f);
  EXPECT_EQ(fp8_value(0x7e), 448.0f);
  EXPECT_TRUE(std::isnan(fp8_value(0x7f)));
  EXPECT_TRUE(std::isnan(fp8_value(0xff)));
  EXPECT_TRUE(std::signbit(fp8_value(0x80)));
}

// Blocks of 4 x 8 that end before the matrix does, scales of rows, and one of the tensor; whole and
// in pieces that begin and end inside rows.
TEST(Fp8Tensor, ScalesOfBlocksRowsAndTensors) {
  constexpr int64_t kRows = 10, kCols = 20;
  std::vector<float> blocks, rows;
  for (int i = 0; i < 9; ++i) blocks.push_back(0.25f * static_cast<float>(i + 1));
  for (int i = 0; i < kRows; ++i) rows.push_back(0.5f * static_cast<float>(i + 1));
  Fp8File file;
  for (const char* name : {"a", "b", "c", "d"}) {
    file.add(std::string(name) + ".weight", "F8_E4M3", {kRows, kCols}, fp8_codes(kRows * kCols));
  }
  file.add_floats("a.weight_scale_inv", {3, 3}, blocks);
  file.add_floats("b.weight_scale", {kRows, 1}, rows);
  file.add_floats("c.weight_scale", {}, {3});
  file.add_floats("c.input_scale", {}, {9});
  file.add_floats("d.weight_scale", {kRows}, rows);
  file.add_floats("norm.weight", {2}, {1, 2});
  const test::ScratchFolder folder;
  const auto checkpoint =
      open_fp8(folder, file, {{"quant_method", "fp8"}, {"weight_block_size", {4, 8}}});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ(checkpoint.value().tensors().size(), 5u);
  const std::string raw = fp8_codes(kRows * kCols);
  for (const std::string name : {"a", "b", "c", "d"}) {
    const TensorView& tensor = *checkpoint.value().find(name + ".weight").value();
    std::vector<float> wanted;
    for (int64_t i = 0; i < kRows * kCols; ++i) {
      const int64_t row = i / kCols, col = i % kCols;
      const float scale = name == "a"   ? blocks[size_t(row / 4 * 3 + col / 8)]
                          : name == "c" ? 3
                                        : rows[size_t(row)];
      wanted.push_back(fp8_value(static_cast<uint8_t>(raw[size_t(i)])) * scale);
    }
    EXPECT_EQ(fp8_elements(tensor, 0, kRows * kCols), wanted) << name;
    for (int64_t first = 0; first < kRows * kCols; first += 37) {
      const int64_t count = std::min<int64_t>(37, kRows * kCols - first);
      ASSERT_EQ(fp8_elements(tensor, first, count),
                std::vector<float>(wanted.begin() + first, wanted.begin() + first + count))
          << name << " from " << first;
    }
    std::vector<uint16_t> bits(wanted.size());
    std::vector<std::byte> scratch;
    ASSERT_TRUE(read_elements(tensor, 0, kRows * kCols, DType::kBF16, bits.data(), scratch).ok());
    for (size_t i = 0; i < bits.size(); ++i) ASSERT_EQ(bits[i], bf16_from_float(wanted[i]));
  }
}

// Experts in one tensor, whose blocks end with each.
TEST(Fp8Tensor, StacksOfMatrices) {
  Fp8File file;
  file.add("x.weight", "F8_E4M3", {2, 4, 8}, fp8_codes(64));
  file.add_floats("x.weight_scale_inv", {2, 1, 2}, {1, 2, 3, 4});
  const test::ScratchFolder folder;
  const auto checkpoint =
      open_fp8(folder, file, {{"quant_method", "fp8"}, {"weight_block_size", {4, 4}}});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const auto values = fp8_elements(*checkpoint.value().find("x.weight").value(), 0, 64);
  const std::string raw = fp8_codes(64);
  for (size_t i = 0; i < 64; ++i) {
    const float scale = static_cast<float>(i / 32 * 2 + i % 8 / 4 + 1);
    EXPECT_EQ(values[i], fp8_value(static_cast<uint8_t>(raw[i])) * scale) << i;
  }
}

TEST(Fp8Tensor, WhatDoesNotFitIsNamed) {
  const auto message = [](const std::vector<int64_t>& shape, const Json& quantization) {
    Fp8File file;
    file.add("x.weight", "F8_E4M3", {8, 8}, fp8_codes(64));
    if (!shape.empty()) {
      int64_t count = 1;
      for (const int64_t size : shape) count *= size;
      file.add_floats("x.weight_scale_inv", shape, std::vector<float>(size_t(count), 1));
    }
    const test::ScratchFolder folder;
    const auto checkpoint = open_fp8(folder, file, quantization);
    EXPECT_FALSE(checkpoint.ok());
    return checkpoint.status().message();
  };
  const Json blocks = {{"quant_method", "fp8"}, {"weight_block_size", {4, 4}}};
  EXPECT_NE(message({}, blocks).find("'x.weight' lacks its scales"), std::string::npos);
  EXPECT_NE(message({3, 2}, blocks).find("no scales of 'x.weight' of shape [8, 8]"),
            std::string::npos);
  EXPECT_NE(message({2, 2}, {{"quant_method", "fp8"}}).find("no scales"), std::string::npos);
  EXPECT_NE(message({2, 2}, nullptr).find("'quantization_config' is missing"), std::string::npos);
  EXPECT_NE(message({2, 2}, {{"quant_method", "fp8"}, {"fmt", "e5m2"}}).find("fmt e5m2"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
