#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/microscaling.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "model/forward_harness.h"
#include "model/golden.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using test::GoldenPrompt;

constexpr int64_t kGroup = 32;  // columns that have a power of two in common

const std::string kKimiK3Folder = test::golden_folder() + "architectures/kimi_k3";

std::vector<float> floats_of(const Checkpoint& checkpoint, const std::string& name) {
  const TensorView& view = *checkpoint.tensors().at(name);
  std::vector<float> values(static_cast<size_t>(view.num_elements()));
  std::vector<std::byte> raw;
  FT_CHECK(read_elements(view, 0, view.num_elements(), DType::kF32, values.data(), raw).ok());
  return values;
}

std::vector<uint8_t> powers_of(const std::vector<float>& values) {
  std::vector<uint8_t> powers;
  for (size_t i = 0; i < values.size(); i += size_t{kGroup}) {
    float top = 0;
    for (size_t j = i; j < i + size_t{kGroup}; ++j) top = std::max(top, std::fabs(values[j]));
    powers.push_back(top > 0 ? static_cast<uint8_t>(std::ilogb(top) - 2 + 127) : 0);
  }
  return powers;
}

std::vector<uint8_t> codes_of(const std::vector<float>& values) {
  const std::vector<uint8_t> powers = powers_of(values);
  std::vector<uint8_t> codes(values.size() / 2);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint8_t code = e2m1_code(values[i] / e8m0_value(powers[i / kGroup]));
    codes[i / 2] = static_cast<uint8_t>(codes[i / 2] | code << 4 * (i % 2));
  }
  return codes;
}

// A safetensors file.
class PublishedFile {
 public:
  template <class T>
  void add(const std::string& name, const char* dtype, const std::vector<int64_t>& shape,
           const std::vector<T>& values) {
    const size_t size = values.size() * sizeof(T);
    header_[name] = {
        {"dtype", dtype}, {"shape", shape}, {"data_offsets", {data_.size(), data_.size() + size}}};
    data_.append(reinterpret_cast<const char*>(values.data()), size);
  }
  std::string text() const {
    std::string header = header_.dump();
    while (header.size() % 8 != 0) header += ' ';
    const uint64_t size = header.size();
    return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + header + data_;
  }

 private:
  nlohmann::json header_ = nlohmann::json::object();
  std::string data_;
};

// The golden model with its experts as they are published.
void write_published(const test::ScratchFolder& to) {
  const auto checkpoint = Checkpoint::open(kKimiK3Folder).value();
  PublishedFile file;
  for (const auto& [name, view] : checkpoint.tensors()) {
    const std::vector<float> values = floats_of(checkpoint, name);
    if (name.find(".experts.") == std::string::npos) {
      file.add(name, "F32", view->shape, values);
      continue;
    }
    const int64_t rows = view->shape[0], cols = view->shape[1];
    file.add(name + "_packed", "U8", {rows, cols / 2}, codes_of(values));
    file.add(name + "_scale", "U8", {rows, cols / kGroup}, powers_of(values));
  }
  to.write("model.safetensors", file.text());
  auto config = read_json_file(kKimiK3Folder + "/config.json").value();
  config["text_config"]["quantization_config"] = nlohmann::json::parse(R"({
      "config_groups": {"group_0": {
          "format": "mxfp4-pack-quantized", "input_activations": null, "output_activations": null,
          "targets": ["Linear"],
          "weights": {"actorder": null, "block_structure": null, "dynamic": false,
                      "group_size": 32, "num_bits": 4, "observer": "minmax",
                      "observer_kwargs": {}, "scale_dtype": "torch.uint8", "strategy": "group",
                      "symmetric": true, "type": "float", "zp_dtype": null}}},
      "format": "mxfp4-pack-quantized", "quant_method": "compressed-tensors"})");
  to.write("config.json", config.dump());
}

// Of the rows that the reference has, the largest distance over the row's length.
double worst_distance(const std::string& folder, const GoldenPrompt& prompt) {
  const auto model = test::load_test_model(folder, {"float32", ""}, 64, 336);
  const auto rows = test::ForwardHarness(test::model_device(), *model, 64, 16).run(prompt.ids, 64);
  double worst = 0;
  for (size_t i = 0; i < prompt.positions.size(); ++i) {
    const auto& row = rows.at(static_cast<size_t>(prompt.positions[i]));
    double error = 0, size = 0;
    for (size_t j = 0; j < row.size(); ++j) {
      error += std::pow(double(row[j]) - prompt.logits[i][j], 2);
      size += std::pow(double(prompt.logits[i][j]), 2);
    }
    worst = std::max(worst, std::sqrt(error / size));
  }
  return worst;
}

TEST(KimiK3, PublishedExpertsHaveTheNumbersOfTheGolden) {
  const test::ScratchFolder folder;
  write_published(folder);
  const auto golden = Checkpoint::open(kKimiK3Folder).value();
  const auto published = Checkpoint::open(folder.path()).value();
  ASSERT_EQ(published.tensors().size(), golden.tensors().size());
  for (const auto& [name, view] : golden.tensors()) {
    EXPECT_EQ(floats_of(published, name), floats_of(golden, name)) << name;
  }
}

// Where matrices stay at four bits, rows are rounded to eight, and scores of experts with them.
TEST(KimiK3, PublishedExpertsStayNearTheReference) {
  const test::ScratchFolder folder;
  write_published(folder);
  const auto packed = test::load_test_model(folder.path(), {"float32", ""}, 8);
  const auto wide = test::load_test_model(kKimiK3Folder, {"float32", ""}, 8);
  EXPECT_EQ(packed->num_weights(), wide->num_weights());
  if (test::model_device().keeps_quantized({4, GroupScale::kHalf, 32, CodeTable::kE2m1, true}, 32,
                                           DType::kF32)) {
    EXPECT_LT(packed->weight_bytes(), wide->weight_bytes());
  }
  for (const GoldenPrompt& prompt : test::golden_prompts(test::golden_cases({"kimi_k3"}).at(0))) {
    EXPECT_LT(worst_distance(folder.path(), prompt), 3e-2);
  }
}

}  // namespace
}  // namespace foretoken
