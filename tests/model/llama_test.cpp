#include "model/arch/llama.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "model/convert.h"
#include "model/forward_harness.h"
#include "model/json_file.h"
#include "model/safetensors.h"

namespace foretoken {
namespace {

using test::ForwardHarness;
using Rows = std::vector<std::vector<float>>;

const std::string kSource = FORETOKEN_SOURCE_DIR;

// One prompt of tests/golden/<model>: reference logits at some positions, then greedy tokens.
struct GoldenPrompt {
  std::vector<int32_t> ids;
  std::vector<int32_t> positions;
  std::vector<int32_t> greedy;
  Rows logits;
};

std::vector<GoldenPrompt> read_golden(const std::string& name, const std::string& kind) {
  const std::string folder = kSource + "/tests/golden/" + name;
  const auto json = read_json_file(folder + "/golden.json").value();
  const auto file = SafetensorsFile::open(folder + "/golden.safetensors").value();
  std::vector<GoldenPrompt> prompts;
  for (const auto& entry : json.at(kind)) {
    GoldenPrompt prompt{entry.at("ids"), entry.at("positions"), entry.at("greedy"), {}};
    const TensorView& tensor =
        file->tensors().at("prompt" + std::to_string(prompts.size()) + ".logits." + kind);
    std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
    EXPECT_TRUE(convert_tensor(tensor, DType::kF32, values.data()).ok());
    const auto vocab = static_cast<ptrdiff_t>(tensor.shape.at(1));
    for (auto at = values.begin(); at != values.end(); at += vocab) {
      prompt.logits.emplace_back(at, at + vocab);
    }
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
    norm += double(b[i]) * b[i];
  }
  return std::sqrt(difference / norm);
}

// Whether the reference's first choice leads its second by at least 2 % of its value.
bool has_clear_choice(std::vector<float> reference) {
  std::nth_element(reference.begin(), reference.begin() + 1, reference.end(), std::greater<>());
  return reference[0] - reference[1] >= 0.02f * std::abs(reference[0]);
}

// Largest ||a - b|| / ||b|| over the rows that the reference has; a clear first choice must agree.
void expect_golden(const std::string& folder, const std::string& name, const std::string& kind,
                   const std::string& dtype, double limit) {
  const auto model = test::load_test_model(folder, dtype, 64);
  double worst = 0;
  for (const GoldenPrompt& prompt : read_golden(name, kind)) {
    ForwardHarness harness(test::model_device(), *model, 64, 16);
    const Rows rows = harness.run(prompt.ids, 64);
    for (size_t i = 0; i < prompt.positions.size(); ++i) {
      const auto& row = rows.at(static_cast<size_t>(prompt.positions[i]));
      ASSERT_EQ(row.size(), prompt.logits[i].size());
      worst = std::max(worst, relative_error(row, prompt.logits[i]));
      if (has_clear_choice(prompt.logits[i])) {
        EXPECT_EQ(test::argmax(row), test::argmax(prompt.logits[i])) << "row " << i;
      }
    }
  }
  testing::Test::RecordProperty("worst_row_error", std::to_string(worst));
  std::printf("%s %s: worst row error %.3g\n", name.c_str(), dtype.c_str(), worst);
  EXPECT_LT(worst, limit);
}

TEST(Llama, TinyLlamaFloat32MatchesTheReference) {
  expect_golden(kSource + "/tests/golden/tiny-llama", "tiny-llama", "fp32", "auto", 1e-5);
}

TEST(Llama, TinyLlamaBfloat16MatchesTheReference) {
  expect_golden(kSource + "/tests/golden/tiny-llama", "tiny-llama", "bf16_weights", "bfloat16",
                1e-2);
}

TEST(Llama, BundledModelMatchesTheReference) {
  expect_golden(kSource + "/models/foretoken-3m", "foretoken-3m", "bf16_weights", "auto", 1e-2);
}

TEST(Llama, BundledModelInFloat32MatchesTheReference) {
  expect_golden(kSource + "/models/foretoken-3m", "foretoken-3m", "bf16_weights", "float32", 1e-5);
}

// Greedy ids of 256 steps, fed back as one long prompt in chunks.
void expect_greedy(const std::string& folder, const std::string& name, const std::string& kind) {
  const auto model = test::load_test_model(folder, "float32", 37);
  for (const GoldenPrompt& prompt : read_golden(name, kind)) {
    std::vector<int32_t> ids = prompt.ids;
    ids.insert(ids.end(), prompt.greedy.begin(), prompt.greedy.end() - 1);
    ForwardHarness harness(test::model_device(), *model, 37, 32);
    const Rows rows = harness.run(ids, 37);
    for (size_t i = 0; i < prompt.greedy.size(); ++i) {
      ASSERT_EQ(test::argmax(rows[prompt.ids.size() - 1 + i]), prompt.greedy[i]) << "token " << i;
    }
  }
}

TEST(Llama, TinyLlamaGreedyTokensMatchTheReference) {
  expect_greedy(kSource + "/tests/golden/tiny-llama", "tiny-llama", "fp32");
}

TEST(Llama, BundledModelGreedyTokensMatchTheReference) {
  expect_greedy(kSource + "/models/foretoken-3m", "foretoken-3m", "bf16_weights");
}

}  // namespace
}  // namespace foretoken
