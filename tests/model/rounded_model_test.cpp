#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "dialled/safetensors_writer.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "model/files/forms/rounded_tensor.h"
#include "model/forward_harness.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

// A golden model, which of its tensors are rounded, and whether columns make their outputs.
struct RoundedCase {
  const char* model;
  std::vector<const char*> rounded;  // parts of names
  std::vector<const char*> exact;    // parts of names of others
  bool by_columns = false;
};

bool holds_any(const std::string& name, const std::vector<const char*>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return name.find(part) != std::string::npos; });
}

// The same model whose weights are rounded already, as plain floats.
void write_rounded(const RoundedCase& of, const std::string& from,
                   const test::ScratchFolder& folder) {
  std::filesystem::copy(from + "/config.json", folder.file("config.json"));
  const auto checkpoint = Checkpoint::open(from).value();
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, view] : checkpoint.tensors()) {
    const bool rounds =
        view->shape.size() >= 2 && holds_any(name, of.rounded) && !holds_any(name, of.exact);
    tensors.push_back(
        {name, FileDType::kF32, view->shape, [view = view, rounds, &of](std::byte* out) {
           std::vector<std::byte> raw;
           const int64_t count = view->num_elements();
           if (!rounds) {
             ASSERT_TRUE(read_elements(*view, 0, count, DType::kF32, out, raw).ok());
             return;
           }
           const auto made = RoundedTensor::create(
                                 *view, of.by_columns ? Fp8Channels::kColumns : Fp8Channels::kRows)
                                 .value();
           ASSERT_TRUE(made.read_elements(0, count, DType::kF32, out, raw).ok());
         }});
  }
  ASSERT_TRUE(write_safetensors(folder.file("model.safetensors"), tensors).ok());
}

std::vector<std::vector<float>> rounded_logits(const std::string& folder, WeightRounding rounding,
                                               bool rounds_activations = false) {
  LoadOptions options;
  options.config.dtype = "float32";
  options.max_rows = options.max_logits_rows = 32;
  options.rounding = rounding;
  options.round_activations = rounds_activations;
  const auto model = load_model(test::model_device(), folder, options).value();
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 20; ++i) ids.push_back((i * i * 31 + i) % 100);
  return test::ForwardHarness(test::model_device(), *model, 32, 4).run(ids, 32);
}

class RoundedModel : public testing::TestWithParam<RoundedCase> {};

// Which matrices are rounded, by which channels, and that every part of them that is read is.
TEST_P(RoundedModel, IsTheModelOfRoundedWeights) {
  const std::string golden =
      std::string(foretoken::kSourceFolder) + "/tests/golden/architectures/" + GetParam().model;
  const test::ScratchFolder folder;
  write_rounded(GetParam(), golden, folder);
  const auto got = rounded_logits(golden, WeightRounding::kFp8);
  EXPECT_EQ(got, rounded_logits(folder.path(), WeightRounding::kNone));
  EXPECT_NE(got, rounded_logits(golden, WeightRounding::kNone));
}

INSTANTIATE_TEST_SUITE_P(
    Models, RoundedModel,
    testing::Values(RoundedCase{"qwen2", {".layers."}, {}},
                    RoundedCase{"mixtral", {".layers."}, {".gate.weight"}},
                    RoundedCase{"qwen2_moe", {".layers."}, {".gate.weight", "shared_expert_gate"}},
                    RoundedCase{"deepseek_v2", {".layers."}, {".gate.weight"}},
                    RoundedCase{"gpt2", {".h."}, {}, true}),
    [](const auto& tested) { return std::string(tested.param.model); });

std::string golden_folder(const std::string& model) {
  return std::string(foretoken::kSourceFolder) + "/tests/golden/architectures/" + model;
}

class RoundedActivations : public testing::TestWithParam<const char*> {};

// Rows that enter products are rounded, those of experts, too, which moves logits a little.
TEST_P(RoundedActivations, AreNearThoseThatAreNot) {
  if (test::model_device().type() != DeviceType::kCpu) {
    GTEST_SKIP() << "no matrix of a float32 model stays FP8 there; RoundedMixtures runs bfloat16";
  }
  const auto exact = rounded_logits(golden_folder(GetParam()), WeightRounding::kFp8);
  const auto rounded = rounded_logits(golden_folder(GetParam()), WeightRounding::kFp8, true);
  ASSERT_EQ(exact.size(), rounded.size());
  size_t num_far = 0;
  for (size_t row = 0; row < exact.size(); ++row) {
    double difference = 0, size = 0;
    for (size_t i = 0; i < exact[row].size(); ++i) {
      difference += std::pow(double(exact[row][i]) - rounded[row][i], 2);
      size += std::pow(double(exact[row][i]), 2);
    }
    EXPECT_GT(difference, 0) << row;
    num_far += std::sqrt(difference / size) > 0.15 ? 1 : 0;
  }
  // Of random experts a row may choose others.
  EXPECT_LE(num_far, exact.size() / 10);
}

INSTANTIATE_TEST_SUITE_P(Models, RoundedActivations,
                         testing::Values("qwen2", "mixtral", "qwen2_moe", "deepseek_v2"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(RoundedActivationsTest, AreRefusedWithoutAMatrixThatIsFp8) {
  LoadOptions options;
  options.config.dtype = "float32";
  options.max_rows = options.max_logits_rows = 32;
  options.round_activations = true;
  const auto model = load_model(test::model_device(), golden_folder("qwen2"), options);
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.status().message().find("add --quantization fp8"), std::string::npos)
      << model.status().message();
}

}  // namespace
}  // namespace foretoken
