#include "convert/to_fp8.h"

#include <gtest/gtest.h>

#include "convert/golden_models.h"
#include "model/files/checkpoint.h"
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
  const auto bytes = to_fp8(source.path(), options);
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
  EXPECT_NE(to_fp8(out.file("fp8"), options).status().message().find("quantised already"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
