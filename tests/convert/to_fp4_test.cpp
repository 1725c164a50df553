#include "convert/to_fp4.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "convert/golden_models.h"
#include "model/files/checkpoint.h"
#include "model/files/containers/json_file.h"
#include "model/files/forms/convert.h"
#include "support/folders.h"

namespace foretoken {
namespace {

std::vector<float> numbers_of(const TensorView& view) {
  std::vector<float> values(static_cast<size_t>(view.num_elements()));
  std::vector<std::byte> raw;
  EXPECT_TRUE(read_elements(view, 0, view.num_elements(), DType::kF32, values.data(), raw).ok());
  return values;
}

// A model whose matrices have whole groups of both forms.
void copy_tiny_llama(const test::ScratchFolder& folder) {
  const auto from = std::filesystem::path(foretoken::kSourceFolder) / "tests/golden/tiny-llama";
  for (const char* file :
       {"config.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors"}) {
    std::filesystem::copy(from / file, folder.file(file));
  }
  folder.write("tokenizer.json", test::kSmallTokenizer);
}

class ToFp4 : public ::testing::TestWithParam<Fp4Form> {};

// Each weight is at most half the widest step of its group from what it was: the largest of a group
// lies between codes 4 and 6, or for a power of two below 8.
TEST_P(ToFp4, IsReadBackNearby) {
  const bool nvfp4 = GetParam() != Fp4Form::kMxfp4;
  const size_t group = nvfp4 ? 16 : 32;
  const test::ScratchFolder source, out;
  copy_tiny_llama(source);
  ConvertOptions options;
  options.output = out.file("fp4");
  const auto bytes = to_fp4(source.path(), GetParam(), options);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto before = Checkpoint::open(source.path()).value();
  const auto after = Checkpoint::open(options.output);
  ASSERT_TRUE(after.ok()) << after.status().message();
  ASSERT_EQ(after.value().tensors().size(), before.tensors().size());
  for (const auto& [name, view] : before.tensors()) {
    const TensorView& made = *after.value().find(name).value();
    ASSERT_EQ(made.shape, view->shape) << name;
    ASSERT_EQ(made.scaled != nullptr, name.find("_proj.weight") != std::string::npos) << name;
    if (made.scaled == nullptr) continue;
    EXPECT_EQ(made.dtype_name, nvfp4 ? "NVFP4" : "MXFP4");
    const std::vector<float> was = numbers_of(*view), is = numbers_of(made);
    double error = 0, size = 0;
    for (size_t first = 0; first < was.size(); first += group) {
      float largest = 0;
      for (size_t i = first; i < first + group; ++i) largest = std::max(largest, std::fabs(was[i]));
      for (size_t i = first; i < first + group; ++i) {
        EXPECT_LE(std::fabs(was[i] - is[i]), largest * (nvfp4 ? 0.2f : 0.26f)) << name << i;
        error += std::pow(was[i] - is[i], 2);
        size += std::pow(was[i], 2);
      }
    }
    EXPECT_LT(std::sqrt(error / size), nvfp4 ? 0.12 : 0.16) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, ToFp4,
                         ::testing::Values(Fp4Form::kNvfp4, Fp4Form::kModelOptNvfp4,
                                           Fp4Form::kMxfp4));

// ModelOpt multiplies scales by what compressed-tensors divides them by.
TEST(ToFp4, ModelOptsFilesSayTheSame) {
  const test::ScratchFolder source, out;
  copy_tiny_llama(source);
  ConvertOptions options;
  options.output = out.file("modelopt");
  const auto bytes = to_fp4(source.path(), Fp4Form::kModelOptNvfp4, options);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto file = read_json_file(out.file("modelopt/hf_quant_config.json")).value();
  EXPECT_EQ("W4A16_NVFP4", file["quantization"]["quant_algo"]);
  EXPECT_EQ(16, file["quantization"]["group_size"]);
  const auto config = read_json_file(out.file("modelopt/config.json")).value();
  EXPECT_EQ("modelopt", config["quantization_config"]["quant_method"]);
}

}  // namespace
}  // namespace foretoken
