#include "model/files/mistral_layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/float8.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "model/files/forms/quantized_tensor.h"

namespace foretoken {
namespace {

std::vector<float> numbers_in(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  EXPECT_TRUE(convert_tensor(tensor, DType::kF32, values.data()).ok());
  return values;
}

// A folder of Mistral's own layout has the tensors of the folder of transformers that it stands
// for.
TEST(MistralLayout, IsThatOfTransformers) {
  for (const test::MistralGolden& golden : test::kMistralGoldens) {
    if (golden.head == 0) continue;
    const test::ScratchFolder folder;
    test::write_own_layout(golden, folder);
    const auto own = Checkpoint::open(folder.path());
    ASSERT_TRUE(own.ok()) << own.status().message();
    const auto usual = Checkpoint::open(test::mistral_model(golden)).value();
    ASSERT_EQ(own.value().tensors().size(), usual.tensors().size());
    for (const auto& [name, tensor] : usual.tensors()) {
      const auto found = own.value().find(name);
      ASSERT_TRUE(found.ok()) << found.status().message();
      EXPECT_EQ(numbers_in(*found.value()), numbers_in(*tensor)) << golden.model << " " << name;
    }
  }
}

constexpr int64_t kHead = 16, kWidth = 4;

// A matrix of one head whose code in row r and column c is r * kWidth + c, and what belongs to it.
std::string coded_head(const char* scale, const char* more) {
  const auto entry = [](const char* name, const char* type, const std::vector<int64_t>& shape,
                        int64_t begin, int64_t end) {
    return std::pair(
        std::string("layers.0.attention.wq.") + name,
        nlohmann::json{{"dtype", type}, {"shape", shape}, {"data_offsets", {begin, end}}});
  };
  constexpr int64_t kCodes = kHead * kWidth;
  nlohmann::json header;
  for (const auto& [name, fields] : {entry("weight", "F8_E4M3", {kHead, kWidth}, 0, kCodes),
                                     entry(scale, "F32", {}, kCodes, kCodes + 4),
                                     entry(more, "F32", {}, kCodes + 4, kCodes + 8)}) {
    header[name] = fields;
  }
  const std::string text = header.dump();
  const uint64_t size = text.size();
  std::string bytes(sizeof size, ' ');
  std::memcpy(bytes.data(), &size, sizeof size);
  bytes += text;
  for (int64_t i = 0; i < kCodes; ++i) bytes += static_cast<char>(i);
  const float scales[] = {0.5F, 2.0F};
  return bytes.append(reinterpret_cast<const char*>(scales), sizeof scales);
}

// Its rows lie in pairs, and are turned as those of floats, whether they stay codes or not.
void expect_paired_codes(const std::string& file, const nlohmann::json& quantization) {
  const test::ScratchFolder folder;
  folder.write("consolidated.safetensors", file);
  auto params = nlohmann::json::parse(test::kMistralGoldens[0].params);
  params.update(quantization);
  folder.write("params.json", params.dump());
  const auto own = Checkpoint::open(folder.path());
  ASSERT_TRUE(own.ok()) << own.status().message();
  const auto found = own.value().find("model.layers.0.self_attn.q_proj.weight");
  ASSERT_TRUE(found.ok()) << found.status().message();
  const TensorView& tensor = *found.value();
  EXPECT_EQ(tensor.input_scale, 2.0F);
  const std::vector<float> values = numbers_in(tensor);
  ASSERT_EQ(values.size(), size_t{kHead * kWidth});
  const QuantForm* form = quantized_form(tensor);
  ASSERT_NE(form, nullptr);
  const int64_t row_bytes = quantized_row_bytes(*form, kWidth);
  std::vector<std::byte> rows(static_cast<size_t>(kHead * row_bytes)), raw;
  ASSERT_TRUE(read_quantized_rows(tensor, 0, kHead, rows.data(), raw).ok());
  for (int64_t row = 0; row < kHead; ++row) {
    const int64_t there = row % (kHead / 2) * 2 + row / (kHead / 2);
    for (int64_t col = 0; col < kWidth; ++col) {
      const auto code = static_cast<uint8_t>(there * kWidth + col);
      EXPECT_EQ(values[static_cast<size_t>(row * kWidth + col)], 0.5F * e4m3_value(code));
      EXPECT_EQ(rows[static_cast<size_t>(row * row_bytes + col)], static_cast<std::byte>(code));
    }
  }
}

TEST(MistralLayout, CodesOfHeadsAreTurnedAsFloatsAre) {
  expect_paired_codes(coded_head("qscale_weight", "qscale_act"),
                      {{"quantization", {{"qformat_weight", "fp8_e4m3"}}}});
  const nlohmann::json weights = {{"num_bits", 8}, {"type", "float"}, {"strategy", "tensor"}};
  const nlohmann::json groups = {{"group_0", {{"targets", {"Linear"}}, {"weights", weights}}}};
  const nlohmann::json compressed = {{"quant_method", "compressed-tensors"},
                                     {"format", "float-quantized"},
                                     {"config_groups", groups}};
  expect_paired_codes(coded_head("weight_scale", "input_scale"),
                      {{"quantization_config", compressed}});
}

}  // namespace
}  // namespace foretoken
