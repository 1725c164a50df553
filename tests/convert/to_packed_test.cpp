#include "convert/to_packed.h"

#include <gtest/gtest.h>

#include "base/bfloat16.h"
#include "convert/golden_models.h"
#include "model/files/checkpoint.h"
#include "model/files/containers/json_file.h"
#include "model/files/forms/packed_tensor.h"

namespace foretoken {
namespace {

class ToPacked : public ::testing::TestWithParam<IntForm> {};

// The reader of compressed-tensors' words finds the numbers that were rounded, each in its place.
TEST_P(ToPacked, IsReadAsItWasRounded) {
  const test::ScratchFolder source, out;
  test::copy_golden("qwen2", source);
  ConvertOptions options;
  options.output = out.file("packed");
  IntForm form = GetParam();
  const auto bytes = to_packed(source.path(), form, options);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto before = Checkpoint::open(source.path()), after = Checkpoint::open(options.output);
  ASSERT_TRUE(after.ok()) << after.status().message();
  ASSERT_EQ(after.value().tensors().size(), before.value().tensors().size());
  form.bf16_scale = true;  // as the golden's weights are
  int matrices = 0;
  for (const auto& [name, view] : before.value().tensors()) {
    const TensorView& made = *after.value().find(name).value();
    EXPECT_EQ(made.shape, view->shape) << name;
    ASSERT_EQ(made.packed != nullptr, name.find("_proj.weight") != std::string::npos) << name;
    if (made.packed == nullptr) continue;
    ++matrices;
    const IntMatrix ints = round_to_ints(TensorRows(*view), form).value();
    std::vector<float> back(static_cast<size_t>(view->num_elements()));
    ASSERT_TRUE(made.packed->read_elements(0, view->num_elements(), DType::kF32, back.data()).ok());
    for (int64_t row = 0; row < ints.rows; ++row) {
      for (int64_t col = 0; col < ints.cols; ++col) {
        const int64_t group = col / form.group;
        const auto code = static_cast<float>(ints.code(row, col));
        const auto zero = static_cast<float>(ints.zero(row, group));
        ASSERT_EQ(back[static_cast<size_t>(row * ints.cols + col)],
                  bf16_to_float(ints.scale(row, group)) * (code - zero))
            << name;
      }
    }
  }
  EXPECT_GT(matrices, 0);
}

INSTANTIATE_TEST_SUITE_P(Forms, ToPacked,
                         ::testing::Values(IntForm{4, 16}, IntForm{4, 16, true}, IntForm{8, 16}),
                         [](const auto& test) {
                           return std::to_string(test.param.bits) +
                                  (test.param.has_zeros ? "Asym" : "");
                         });

TEST(ToPackedFolder, TheConfigurationNamesRouters) {
  const test::ScratchFolder source, out;
  test::copy_golden("mixtral", source);
  ConvertOptions options;
  options.output = out.file("packed");
  const auto bytes = to_packed(source.path(), {4, 32, true}, options);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto config = read_json_file(out.file("packed/config.json")).value();
  const auto& quantization = config["quantization_config"];
  EXPECT_EQ("pack-quantized", quantization["format"]);
  const auto& weights = quantization["config_groups"]["group_0"]["weights"];
  EXPECT_EQ(false, weights["symmetric"]);
  EXPECT_EQ(32, weights["group_size"]);
  EXPECT_EQ("lm_head", quantization["ignore"][0]);
  EXPECT_EQ("model.layers.0.block_sparse_moe.gate", quantization["ignore"][1]);
  options.output = out.file("other");
  EXPECT_NE(to_packed(source.path(), {4, 128}, options).status().message().find("groups of 128"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
