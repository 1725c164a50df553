#include "convert/to_fp8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>

#include "convert/golden_models.h"
#include "model/files/checkpoint.h"
#include "model/files/containers/json_file.h"
#include "model/files/containers/safetensors.h"
#include "model/files/forms/convert.h"
#include "model/files/forms/rounded_tensor.h"
#include "model/files/quantization_choice.h"

namespace foretoken {
namespace {

std::vector<float> weights_of(const TensorView& view) {
  std::vector<float> values(static_cast<size_t>(view.num_elements()));
  std::vector<std::byte> raw;
  EXPECT_TRUE(read_elements(view, 0, view.num_elements(), DType::kF32, values.data(), raw).ok());
  return values;
}

// What is written holds the numbers that --quantization fp8 makes of the source while loading, and
// everything else as it was.
TEST(ToFp8, IsWhatRoundingWhileLoadingMakes) {
  const test::ScratchFolder source, out;
  test::copy_golden("qwen2", source);
  ConvertOptions options;
  options.output = out.file("fp8");
  const auto bytes = to_fp8(source.path(), Fp8Form::kRows, options);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(choose_quantization("fp8", source.path()).value(), WeightRounding::kFp8);
  EXPECT_EQ(choose_quantization("fp8", options.output).value(), WeightRounding::kNone);
  const auto before = Checkpoint::open(source.path()).value();
  const auto after = Checkpoint::open(options.output);
  ASSERT_TRUE(after.ok()) << after.status().message();
  ASSERT_EQ(after.value().tensors().size(), before.tensors().size());
  int matrices = 0;
  for (const auto& [name, view] : before.tensors()) {
    const TensorView& made = *after.value().find(name).value();
    EXPECT_EQ(made.shape, view->shape) << name;
    const bool is_matrix = name.find("_proj.weight") != std::string::npos;
    ASSERT_EQ(made.scaled != nullptr, is_matrix) << name;
    if (!is_matrix) {
      EXPECT_EQ(weights_of(made), weights_of(*view)) << name;
      continue;
    }
    ++matrices;
    const auto rounded = RoundedTensor::create(*view, Fp8Channels::kRows).value();
    std::vector<float> wanted(static_cast<size_t>(view->num_elements()));
    std::vector<std::byte> raw;
    ASSERT_TRUE(
        rounded.read_elements(0, view->num_elements(), DType::kF32, wanted.data(), raw).ok());
    EXPECT_EQ(weights_of(made), wanted) << name;
    EXPECT_NE(wanted, weights_of(*view)) << name;
  }
  EXPECT_GT(matrices, 0);
  options.output = out.file("again");
  EXPECT_NE(
      to_fp8(out.file("fp8"), Fp8Form::kRows, options).status().message().find("quantised already"),
      std::string::npos);
}

// Families whose ends have names of their own, tables beside them, or layers without attention.
class ToFp8Families : public ::testing::TestWithParam<const char*> {};

TEST_P(ToFp8Families, RoundMatricesOfLayersAlone) {
  const test::ScratchFolder source, out;
  test::copy_golden(GetParam(), source);
  ConvertOptions options;
  options.output = out.file("fp8");
  const auto bytes = to_fp8(source.path(), Fp8Form::kRows, options);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto before = Checkpoint::open(source.path()).value();
  const auto after = Checkpoint::open(options.output);
  ASSERT_TRUE(after.ok()) << after.status().message();
  EXPECT_EQ(after.value().tensors().size(), before.tensors().size());
  int matrices = 0;
  for (const auto& [name, view] : before.tensors()) {
    const auto found = after.value().find(name);
    ASSERT_TRUE(found.ok()) << name;
    const TensorView& made = *found.value();
    if (made.scaled == nullptr) {
      EXPECT_EQ(weights_of(made), weights_of(*view)) << name;
      continue;
    }
    ++matrices;
    EXPECT_TRUE(name.find(".layers.") != name.npos || name.find(".h.") != name.npos ||
                name.find(".blocks.") != name.npos)
        << name;
    for (const char* other : {"norm", "conv", "A_log"}) {
      EXPECT_EQ(name.find(other), name.npos) << name;
    }
  }
  EXPECT_GT(matrices, 0);
}
INSTANTIATE_TEST_SUITE_P(Families, ToFp8Families,
                         ::testing::Values("bloom", "falcon", "mamba", "falcon_mamba", "opt",
                                           "gpt_neox", "mpt", "phi", "jamba", "gemma3n", "apertus",
                                           "kimi_linear"));

struct FormCase {
  Fp8Form form;
  const char* name;
  const char* scales;  // the ending of their tensor
  std::vector<int64_t> scale_shape;
};
void PrintTo(const FormCase& c, std::ostream* out) { *out << c.name; }

class ToFp8Forms : public ::testing::TestWithParam<FormCase> {};

// A matrix of 32 x 32 is one block of 128 x 128: E4M3 with the scale of its largest number.
TEST_P(ToFp8Forms, HoldTheNearestCodesOfTheirBlocks) {
  const test::ScratchFolder source, out;
  test::copy_golden("qwen2", source);
  ConvertOptions options;
  options.output = out.file("fp8");
  const auto bytes = to_fp8(source.path(), GetParam().form, options);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const std::string name = "model.layers.0.self_attn.q_proj";
  const auto file = SafetensorsFile::open(out.file("fp8/model.safetensors")).value();
  const auto& tensors = file->tensors();
  const auto found = tensors.find(name + GetParam().scales);
  ASSERT_NE(found, tensors.end());
  EXPECT_EQ(found->second.shape, GetParam().scale_shape);
  EXPECT_EQ(found->second.dtype_name, "F32");
  const auto before = Checkpoint::open(source.path()), after = Checkpoint::open(options.output);
  ASSERT_TRUE(after.ok()) << after.status().message();
  const std::vector<float> was = weights_of(*before.value().find(name + ".weight").value());
  const std::vector<float> is = weights_of(*after.value().find(name + ".weight").value());
  ASSERT_EQ(was.size(), is.size());
  const bool by_row = GetParam().form == Fp8Form::kModelOptRows;
  const size_t block = by_row ? 32 : was.size();
  for (size_t first = 0; first < was.size(); first += block) {
    const float scale =
        fp8_scale(largest_magnitude(was.data() + first, static_cast<int64_t>(block)));
    for (size_t i = first; i < first + block; ++i) {
      ASSERT_EQ(is[i], round_to_fp8(was[i], scale)) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, ToFp8Forms,
    ::testing::Values(FormCase{Fp8Form::kBlocks, "blocks", ".weight_scale_inv", {1, 1}},
                      FormCase{Fp8Form::kTensor, "tensor", ".weight_scale", {}},
                      FormCase{Fp8Form::kModelOptRows, "modelopt", ".weight_scale", {32}}));

// Blocks at the ends of rows and of matrices hold fewer than 128 each way.
TEST(ToFp8, BlocksAtTheEndsAreCut) {
  const test::ScratchFolder out;
  ConvertOptions options;
  options.output = out.file("fp8");
  const std::string source =
      std::string(foretoken::kSourceFolder) + "/models/foretoken-2m-deepseek";
  const auto bytes = to_fp8(source, Fp8Form::kBlocks, options);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto before = Checkpoint::open(source), after = Checkpoint::open(options.output);
  ASSERT_TRUE(after.ok()) << after.status().message();
  int matrices = 0, cut = 0;
  for (const auto& [name, view] : after.value().tensors()) {
    if (view->scaled == nullptr) continue;
    ++matrices;
    const int64_t n = view->shape[0], k = view->shape[1];
    cut += n % 128 != 0 && n > 128 ? 1 : 0;
    const std::vector<float> was = weights_of(*before.value().find(name).value());
    const std::vector<float> is = weights_of(*view);
    for (int64_t at = 0; at < n * k; ++at) {
      // Four bits of mantissa, and steps of a scale of 448th parts below.
      ASSERT_NEAR(was[static_cast<size_t>(at)], is[static_cast<size_t>(at)],
                  std::max(std::fabs(was[static_cast<size_t>(at)]) / 16, 1e-3F))
          << name;
    }
  }
  EXPECT_GT(matrices, 0);
  EXPECT_GT(cut, 0);
}

// What other programs are told of the folder.
TEST(ToFp8, TheFilesSayWhatTheirReadersLookFor) {
  const std::string source =
      std::string(foretoken::kSourceFolder) + "/models/foretoken-2m-deepseek";
  const test::ScratchFolder out;
  ConvertOptions options;
  options.output = out.file("blocks");
  ASSERT_TRUE(to_fp8(source, Fp8Form::kBlocks, options).ok());
  const auto blocks = read_json_file(out.file("blocks/config.json")).value()["quantization_config"];
  EXPECT_EQ("fp8", blocks["quant_method"]);
  EXPECT_EQ(nlohmann::json({128, 128}), blocks["weight_block_size"]);
  EXPECT_EQ("lm_head", blocks["modules_to_not_convert"][0]);
  const std::string plain = blocks["modules_to_not_convert"].dump();
  EXPECT_NE(plain.find("model.layers.4.eh_proj"), std::string::npos) << plain;
  EXPECT_EQ(plain.find("re:"), std::string::npos) << plain;
  options.output = out.file("modelopt");
  ASSERT_TRUE(to_fp8(source, Fp8Form::kModelOptRows, options).ok());
  const auto file = read_json_file(out.file("modelopt/hf_quant_config.json")).value();
  EXPECT_EQ("modelopt", file["producer"]["name"]);
  EXPECT_EQ("FP8_PER_CHANNEL_PER_TOKEN", file["quantization"]["quant_algo"]);
  EXPECT_EQ("lm_head", file["quantization"]["exclude_modules"][0]);
}

}  // namespace
}  // namespace foretoken
