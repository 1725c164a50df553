#include "model/files/forms/quantized_tensor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

constexpr int64_t kRows = 24, kCols = 512;

// A matrix of random blocks in memory.
struct Blocks {
  explicit Blocks(const BlockType& type)
      : bytes(static_cast<size_t>(kRows * kCols / type.elements * type.bytes)) {
    std::mt19937 random(3);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 63);
    tensor.name = type.name;
    tensor.file = "file";
    tensor.dtype = FileDType::kOther;
    tensor.shape = {kRows, kCols};
    tensor.data = bytes.data();
    tensor.num_bytes = std::ssize(bytes);
    tensor.block = &type;
  }
  std::vector<std::byte> bytes;
  TensorView tensor;
};

TEST(QuantizedTensor, HalvesAreLookedUpAsFloats) {
  TensorView tensor;
  tensor.dtype = FileDType::kF16;
  EXPECT_EQ(looked_up_dtype(tensor, DType::kF32), DType::kF16);
  EXPECT_EQ(looked_up_dtype(tensor, DType::kBF16), DType::kBF16);
  tensor.dtype = FileDType::kBF16;
  EXPECT_EQ(looked_up_dtype(tensor, DType::kF32), DType::kF32);
}

// Rows that stay quantised have the values of the rows that are widened.
TEST(QuantizedTensor, RowsHaveTheSameValues) {
  for (const uint32_t number :
       {2u, 8u, 12u, 14u, 3u, 6u, 7u, 10u, 11u, 13u, 20u, 23u, 34u, 35u, 39u}) {
    Blocks blocks(*find_block_type(number));
    for (size_t at = 0; number == 39 && at < blocks.bytes.size(); at += 17) {
      blocks.bytes[at] |= std::byte{64} | std::byte{40};  // powers of two that are halves
    }
    const QuantForm* form = quantized_form(blocks.tensor);
    ASSERT_NE(form, nullptr);
    EXPECT_TRUE(keeps_values(blocks.tensor).value());
    for (const int64_t interleaved : {0, 8}) {
      blocks.tensor.interleaved_rows = interleaved;
      std::vector<float> want(kRows * kCols), got(kCols);
      std::vector<std::byte> raw;
      ASSERT_TRUE(
          read_elements(blocks.tensor, 0, kRows * kCols, DType::kF32, want.data(), raw).ok());
      const int64_t row_bytes = quantized_row_bytes(*form, kCols);
      std::vector<std::byte> rows(static_cast<size_t>(5 * row_bytes));
      for (const int64_t first : {0, 3, 19}) {
        ASSERT_TRUE(read_quantized_rows(blocks.tensor, first, 5, rows.data(), raw).ok());
        for (int64_t r = 0; r < 5; ++r) {
          dequantize_row(*form, rows.data() + r * row_bytes, kCols, got.data());
          for (int64_t i = 0; i < kCols; ++i) {
            ASSERT_EQ(got[static_cast<size_t>(i)],
                      want[static_cast<size_t>((first + r) * kCols + i)])
                << blocks.tensor.name << " row " << first + r;
          }
        }
      }
    }
    EXPECT_EQ(packed_row_bytes(*form, kCols),
              kCols * form->bits / 8 + quantized_row_bytes(*form, kCols) - kCols);
  }
}

// Whether rows stay quantised or are widened, from the block's own row alone.
TEST(QuantizedTensor, BlocksWithScalesThatAreNoNumbersAreNamed) {
  constexpr int64_t kRow = 7, kBlock = kRow * kCols / 256 + 1;
  Blocks blocks(*find_block_type("Q6_K"));
  blocks.bytes[static_cast<size_t>(kBlock * 210 + 209)] = std::byte{0x7c};
  std::vector<std::byte> raw, rows(size_t{kCols} * 8);
  std::vector<float> floats(kCols);
  const auto both = [&](int64_t row) {
    return std::pair(
        read_quantized_rows(blocks.tensor, row, 1, rows.data(), raw),
        read_elements(blocks.tensor, row * kCols, kCols, DType::kF32, floats.data(), raw));
  };
  for (const int64_t row : {kRow - 1, kRow + 1}) {
    EXPECT_TRUE(both(row).first.ok() && both(row).second.ok());
  }
  for (const Status& status : {both(kRow).first, both(kRow).second}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), "file: block " + std::to_string(kBlock) +
                                    " of tensor 'Q6_K' has a scale that is NaN or infinite; the "
                                    "file is damaged, fetch it again");
  }
}

// F16 keeps its halves for x that is float.
TEST(QuantizedTensor, Halves) {
  const std::vector<uint16_t> halves = {0x3c00, 0x4000, 0xc200, 0x3800};
  TensorView tensor;
  tensor.name = "halves";
  tensor.dtype = FileDType::kF16;
  tensor.shape = {2, 2};
  tensor.data = reinterpret_cast<const std::byte*>(halves.data());
  tensor.num_bytes = 8;
  const QuantForm* form = quantized_form(tensor, DType::kF32);
  ASSERT_NE(form, nullptr);
  EXPECT_EQ(form->scale, GroupScale::kNone);
  EXPECT_EQ(quantized_form(tensor, DType::kBF16), nullptr);
  std::vector<std::byte> row(4), raw;
  EXPECT_EQ(quantized_row_bytes(*form, 2), 4);
  EXPECT_EQ(packed_row_bytes(*form, 2), 4);
  ASSERT_TRUE(read_quantized_rows(tensor, 1, 1, row.data(), raw).ok());
  float floats[2];
  dequantize_row(*form, row.data(), 2, floats);
  EXPECT_EQ(floats[0], -3);
  EXPECT_EQ(floats[1], 0.5F);
}

TEST(QuantizedTensor, PlainTensorsAreNotQuantized) {
  TensorView tensor;
  EXPECT_EQ(quantized_form(tensor), nullptr);
  tensor.block = find_block_type(1);
  EXPECT_EQ(quantized_form(tensor), nullptr);
}

// A file that ends early is named.
TEST(QuantizedTensor, AShortFileIsAnError) {
  Blocks blocks(*find_block_type(8));
  blocks.tensor.descriptor = 1 << 20;  // no file has it
  std::vector<std::byte> rows(kCols * 2), raw;
  const Status status = read_quantized_rows(blocks.tensor, 0, 1, rows.data(), raw);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("file"), std::string::npos);
}

// What opening a golden checkpoint ends with where the last number of a tensor has other bytes:
// each of them 0xff (NaN in all types), or those of an infinity of a type of floats.
std::string message_of_damaged(const std::string& name, const std::string& tensor, bool infinite) {
  const std::string golden = std::string(kSourceFolder) + "/tests/golden/quantised/" + name;
  const test::ScratchFolder folder;
  std::filesystem::copy(golden + "/config.json", folder.file("config.json"));
  std::ifstream whole(golden + "/model.safetensors", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(whole), {}};
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  const auto entry = nlohmann::json::parse(bytes.substr(8, size)).at(tensor);
  const std::string type = entry.at("dtype");
  const std::string infinity = type == "F32"   ? std::string("\0\0\x80\x7f", 4)
                               : type == "F16" ? std::string("\0\xfc", 2)
                                               : "\x80\x7f";
  const size_t each = type == "F32" ? 4 : type == "F16" || type == "BF16" ? 2 : 1;
  const auto end = 8 + size + entry.at("data_offsets").at(1).get<size_t>();
  bytes.replace(end - each, each, infinite ? infinity : std::string(each, '\xff'));
  folder.write("model.safetensors", bytes);
  return Checkpoint::open(folder.path()).status().message();
}

// A process that multiplied with them would end at its first request.
TEST(QuantizedTensor, ScalesThatAreNotFiniteAreRefused) {
  const std::pair<const char*, const char*> scales[] = {
      {"fp8-tensor", "m.weight_scale"},
      {"fp8-channel", "m.weight_scale"},
      {"fp8-blocks", "m.weight_scale_inv"},
      {"fp8-e5m2", "m.weight_scale"},
      {"nvfp4-modelopt", "m.weight_scale"},
      {"nvfp4-modelopt", "m.weight_scale_2"},
      {"nvfp4-compressed", "m.weight_global_scale"},
      {"mxfp4", "m.weight_scale"},
      {"int8", "m.weight_scale"},
      {"awq", "m.scales"},
      {"gptq-4", "m.scales"},
      {"gptq-4-act-order", "m.scales"},
      {"compressed", "m.weight_scale"},
      {"mixed", "m.weight_scale"},
      {"marlin-24-4", "m.scale_packed"},
      {"modelopt-int4-awq", "m.weight_scale"},
      {"modelopt-nvfp4-awq", "m.pre_quant_scale"},
      {"quark-int4", "m.weight_scale"},
      {"quark-fp6-e2m3", "m.weight_scale"},
      {"torchao-int4", "m._weight_scale"},
      {"torchao-int8", "m._weight_scale"},
      {"torchao-float8", "m._weight_scale"},
      {"hqq-4", "m.zero"},
      {"bnb-int8", "m.SCB"},
      {"bnb-nf4", "m.weight.absmax"},
      {"bnb-nf4-nested", "m.weight.nested_absmax"},
      {"fp-quant", "mx.scales"},
      {"gemma", "table.embedding_scale"},
      {"metal", "m4.qbiases"},
      {"mlx", "a4.scales"},
      {"mlx", "mxfp4.scales"},
      {"mlx", "nvfp4.scales"}};
  for (const auto& [name, tensor] : scales) {
    const std::string of_nan = message_of_damaged(name, tensor, false);
    EXPECT_TRUE(
        of_nan.ends_with("has a scale that is NaN or infinite; the file is damaged, fetch "
                         "it again"))
        << name << ": " << of_nan;
    EXPECT_NE(of_nan.find(std::string("tensor '") + tensor + "'"), std::string::npos) << of_nan;
  }
  for (const auto& [name, tensor] : {std::pair{"fp8-blocks", "m.weight_scale_inv"},
                                     {"fp8-channel", "m.weight_scale"},
                                     {"gptq-4", "m.scales"}}) {
    EXPECT_NE(message_of_damaged(name, tensor, true).find("is NaN or infinite"), std::string::npos)
        << name;
  }
}

}  // namespace
}  // namespace foretoken
