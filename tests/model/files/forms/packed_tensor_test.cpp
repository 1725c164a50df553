#include "model/files/forms/packed_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/bfloat16.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "model/files/forms/quantized_tensor.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

std::string golden(const std::string& name) {
  return std::string(foretoken::kSourceFolder) + "/tests/golden/quantised/" + name;
}

std::vector<float> elements(const TensorView& tensor, int64_t first, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::vector<std::byte> raw;
  const Status status = read_elements(tensor, first, count, DType::kF32, values.data(), raw);
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

class PackedTensors : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    Result<Checkpoint> opened = Checkpoint::open(golden(GetParam()));
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    checkpoint_.emplace(std::move(opened).value());
    tensor_ = checkpoint_->find("m.weight").value();
    file_ = SafetensorsFile::open(golden(GetParam()) + "/expected.safetensors").value();
    expected_ = elements(file_->tensors().at("m.weight"), 0, kRows * kCols);
  }

  static constexpr int64_t kRows = 24, kCols = 64;
  std::optional<Checkpoint> checkpoint_;
  std::unique_ptr<SafetensorsFile> file_;
  const TensorView* tensor_ = nullptr;
  std::vector<float> expected_;
};

// Bit for bit, whole and in pieces that begin and end inside rows.
TEST_P(PackedTensors, WidenToWhatNumpySays) {
  EXPECT_EQ(tensor_->shape, (std::vector{kRows, kCols}));
  EXPECT_EQ(elements(*tensor_, 0, kRows * kCols), expected_);
  for (const int64_t piece : {int64_t{1}, int64_t{37}, int64_t{300}}) {
    for (int64_t first = 0; first < kRows * kCols; first += piece) {
      const int64_t count = std::min(piece, kRows * kCols - first);
      const std::vector<float> wanted(expected_.begin() + first, expected_.begin() + first + count);
      ASSERT_EQ(elements(*tensor_, first, count), wanted) << first;
    }
  }
  std::vector<uint16_t> bits(expected_.size());
  std::vector<std::byte> raw;
  ASSERT_TRUE(read_elements(*tensor_, 0, kRows * kCols, DType::kBF16, bits.data(), raw).ok());
  for (size_t i = 0; i < bits.size(); ++i) EXPECT_EQ(bits[i], bf16_from_float(expected_[i]));
}

TEST_P(PackedTensors, RowsSayTheSame) {
  const PackedTensor& packed = *tensor_->packed;
  PackedRows rows;
  ASSERT_TRUE(packed.read_rows(3, 7, &rows).ok());
  for (int64_t r = 0; r < 7; ++r) {
    for (int64_t i = 0; i < kCols; ++i) {
      const auto group =
          static_cast<size_t>(r * packed.num_groups() + packed.group_of()[static_cast<size_t>(i)]);
      const float value =
          rows.scales[group] *
          static_cast<float>(rows.codes[static_cast<size_t>(r * kCols + i)] - rows.zeros[group]);
      ASSERT_EQ(value, expected_[static_cast<size_t>((r + 3) * kCols + i)]);
    }
  }
}

// Rows that stay quantised have the same values, where their groups follow.
TEST_P(PackedTensors, StayQuantised) {
  const QuantForm* form = tensor_->packed->form();
  const std::string name = GetParam();
  ASSERT_EQ(form == nullptr, name == "gptq-4-act-order");
  EXPECT_EQ(quantized_form(*tensor_), form);
  if (form == nullptr) return;
  EXPECT_EQ(form->bits, name == "gptq-8" ? 8 : 4);
  EXPECT_EQ(form->scale == GroupScale::kHalf, name == "compressed" || name == "gptq-4-rows")
      << name;
  const int64_t row_bytes = quantized_row_bytes(*form, kCols);
  std::vector<std::byte> rows(static_cast<size_t>(kRows * row_bytes)), raw;
  for (const int64_t first : {int64_t{0}, int64_t{3}, int64_t{17}}) {
    const int64_t count = std::min<int64_t>(kRows - first, 9);
    ASSERT_TRUE(read_quantized_rows(*tensor_, first, count, rows.data(), raw).ok());
    for (int64_t r = 0; r < count; ++r) {
      std::vector<float> got(kCols);
      dequantize_row(*form, rows.data() + r * row_bytes, kCols, got.data());
      const auto want = expected_.begin() + (first + r) * kCols;
      ASSERT_TRUE(std::equal(got.begin(), got.end(), want)) << first + r;
    }
  }
}

// The tensors that make up the matrix are gone, others stay.
TEST_P(PackedTensors, TakeThePlaceOfTheirParts) {
  std::set<std::string> names;
  for (const auto& [name, view] : checkpoint_->tensors()) names.insert(name);
  const bool gptq = std::string(GetParam()).starts_with("gptq");
  EXPECT_EQ(names, gptq ? std::set<std::string>({"m.bias", "m.weight", "other.weight"})
                        : std::set<std::string>({"m.weight"}));
  if (!gptq) return;
  EXPECT_TRUE(checkpoint_->may_be_left_out(*checkpoint_->find("m.bias").value()));
  EXPECT_FALSE(checkpoint_->may_be_left_out(*checkpoint_->find("other.weight").value()));
}

INSTANTIATE_TEST_SUITE_P(Layouts, PackedTensors,
                         ::testing::Values("gptq-4", "gptq-8", "gptq-4-act-order", "gptq-4-v2",
                                           "gptq-4-rows", "awq", "compressed", "compressed-zeros",
                                           "compressed-2"));

// What the config of a golden checkpoint says, changed.
std::string problem(const std::string& name, const std::string& config) {
  const test::ScratchFolder folder;
  std::filesystem::copy(golden(name) + "/model.safetensors", folder.file("model.safetensors"));
  folder.write("config.json", config);
  return Checkpoint::open(folder.path()).status().message();
}

TEST(PackedTensor, NamesWhatIsWrong) {
  EXPECT_NE(problem("awq", "{}").find("'quantization_config' is missing"), std::string::npos);
  EXPECT_NE(problem("awq", R"({"quantization_config": {"quant_method": "awq", "group_size": 32}})")
                .find("m.scales' has shape [4, 24], but quantization_config asks for [2, 24]"),
            std::string::npos);
  EXPECT_NE(
      problem("gptq-4",
              R"({"quantization_config": {"quant_method": "gptq", "bits": 8, "group_size": 16}})")
          .find("m.scales' has shape"),
      std::string::npos);
}

// Without zeros or groups that the config says there are the codes would stand for other numbers.
TEST(PackedTensor, WhatTheConfigSaysMustBeThere) {
  EXPECT_NE(problem("compressed", R"({"quantization_config": {"quant_method": "compressed-tensors",
              "format": "pack-quantized", "config_groups": {"g": {"weights": {"num_bits": 4,
              "group_size": 16, "strategy": "group", "symmetric": false}}}}})")
                .find("'m.weight_packed' lacks its zeros"),
            std::string::npos);
  EXPECT_NE(problem("compressed", R"({"quantization_config": {"quant_method": "compressed-tensors",
              "format": "pack-quantized", "config_groups": {"g": {"weights": {"num_bits": 4,
              "group_size": 16, "strategy": "group", "actorder": "group"}}}}})")
                .find("lacks its groups of columns"),
            std::string::npos);
}

std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Some tools write 0 for every column where they do not reorder them.
TEST(PackedTensor, GroupsThatAreAllTheFirstAreLeftAside) {
  const test::ScratchFolder folder;
  std::string bytes = file_bytes(golden("gptq-4") + "/model.safetensors");
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  const auto header = nlohmann::json::parse(bytes.substr(8, size));
  const auto range = header.at("m.g_idx").at("data_offsets");
  const auto begin = 8 + size + range.at(0).get<uint64_t>();
  const uint64_t count = range.at(1).get<uint64_t>() - range.at(0).get<uint64_t>();
  bytes.replace(begin, count, std::string(count, '\0'));
  folder.write("model.safetensors", bytes);
  folder.write("config.json", file_bytes(golden("gptq-4") + "/config.json"));
  const auto changed = Checkpoint::open(folder.path());
  ASSERT_TRUE(changed.ok()) << changed.status().message();
  const auto whole = Checkpoint::open(golden("gptq-4"));
  const int64_t all = whole.value().find("m.weight").value()->num_elements();
  EXPECT_EQ(elements(*changed.value().find("m.weight").value(), 0, all),
            elements(*whole.value().find("m.weight").value(), 0, all));
}

// As AutoRound packed them: codes of three and five bits lie across words. Those of two and three
// stay as four bits, others are widened.
TEST(PackedTensor, OfOtherBits) {
  for (const int bits : {2, 3, 5}) {
    const std::string folder = golden("gptq-" + std::to_string(bits));
    const auto checkpoint = Checkpoint::open(folder);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    const TensorView& tensor = *checkpoint.value().find("m.weight").value();
    const auto file = SafetensorsFile::open(folder + "/expected.safetensors").value();
    const TensorView& expected = file->tensors().at("m.weight");
    ASSERT_EQ(tensor.shape, expected.shape) << bits;
    const int64_t k = tensor.shape[1], count = tensor.num_elements();
    const std::vector<float> wanted = elements(expected, 0, count);
    EXPECT_EQ(elements(tensor, 0, count), wanted) << bits;
    EXPECT_EQ(elements(tensor, 37, 700),
              std::vector<float>(wanted.begin() + 37, wanted.begin() + 737));
    const QuantForm* form = quantized_form(tensor);
    ASSERT_NE(form, nullptr) << bits;
    EXPECT_EQ(form->bits, bits < 4 ? 4 : 8);
    EXPECT_EQ(form->scale, GroupScale::kHalfAndZero);
    std::vector<std::byte> row(static_cast<size_t>(quantized_row_bytes(*form, k))), raw;
    std::vector<float> values(static_cast<size_t>(k));
    for (int64_t r = 0; r < tensor.shape[0]; ++r) {
      ASSERT_TRUE(read_quantized_rows(tensor, r, 1, row.data(), raw).ok());
      dequantize_row(*form, row.data(), k, values.data());
      ASSERT_TRUE(std::equal(values.begin(), values.end(), wanted.begin() + r * k)) << bits;
    }
  }
}

}  // namespace
}  // namespace foretoken
