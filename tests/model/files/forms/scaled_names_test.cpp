#include "model/files/forms/scaled_names.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TensorView tensor_of(const char* dtype) {
  TensorView view;
  view.dtype = FileDType::kOther;
  view.dtype_name = dtype;
  view.shape = {4, 4};
  return view;
}

TEST(ScaledNames, PartsOfMatrices) {
  const TensorView fp8 = tensor_of("F8_E4M3"), bytes = tensor_of("U8"), integers = tensor_of("I8"),
                   floats = tensor_of("F32"), words = tensor_of("I32");
  const std::map<std::string, const TensorView*> tensors = {{"a.weight", &fp8},
                                                            {"a.weight_scale_inv", &floats},
                                                            {"b.weight", &bytes},
                                                            {"b.weight_scale", &fp8},
                                                            {"b.weight_scale_2", &floats},
                                                            {"c.weight_packed", &bytes},
                                                            {"c.weight_scale", &fp8},
                                                            {"c.weight_global_scale", &floats},
                                                            {"d.weight", &integers},
                                                            {"d.weight_scale", &floats},
                                                            {"d.weight_zero_point", &integers},
                                                            {"e.weight_packed", &words},
                                                            {"e.weight_scale", &floats},
                                                            {"f.mask", &bytes},
                                                            {"g", &fp8},
                                                            {"h_blocks", &bytes},
                                                            {"h_scales", &bytes},
                                                            {"g_weight_scale", &floats}};
  const auto found = find_scaled(tensors);
  ASSERT_TRUE(found.ok()) << found.status().message();
  std::vector<std::string> names;
  for (const NamedScaled& named : found.value()) names.push_back(named.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"a.weight", "b.weight", "c.weight", "d.weight", "g", "h"}));
  const auto& all = found.value();
  EXPECT_EQ(all[0].parts.type, CodeType::kE4m3);
  EXPECT_EQ(all[1].parts.type, CodeType::kE2m1);
  EXPECT_EQ(all[1].parts.factor, &floats);
  EXPECT_FALSE(all[1].parts.divides);
  EXPECT_TRUE(all[2].parts.divides);
  EXPECT_EQ(all[2].names.size(), 3u);
  EXPECT_EQ(all[3].parts.zeros, &integers);
  EXPECT_TRUE(all[5].parts.in_blocks);
  EXPECT_EQ(all[5].parts.scales, &bytes);
  EXPECT_EQ(all[4].names, (std::vector<std::string>{"g", "g_weight_scale"}));
}

TensorView number_of(const float& value) {
  TensorView view;
  view.dtype = FileDType::kF32;
  view.dtype_name = "F32";
  view.shape = {1};
  view.data = reinterpret_cast<const std::byte*>(&value);
  view.num_bytes = sizeof value;
  return view;
}

// Of FP8 alone, by its two names.
TEST(ScaledNames, ScalesOfInputs) {
  const float half = 0.5f, none = 0.0f, infinite = 1.0f / none;
  const TensorView fp8 = tensor_of("F8_E4M3"), bytes = tensor_of("U8"), scales = tensor_of("F32"),
                   own = number_of(half), odd = number_of(infinite), zero = number_of(none);
  const auto found = find_scaled({{"a.weight", &fp8},
                                  {"a.weight_scale", &scales},
                                  {"a.input_scale", &own},
                                  {"b.weight", &fp8},
                                  {"b.weight_scale_inv", &scales},
                                  {"b.activation_scale", &own},
                                  {"c.weight", &bytes},
                                  {"c.weight_scale", &fp8},
                                  {"c.input_scale", &own},
                                  {"d.gate_up_proj", &fp8},
                                  {"d.gate_up_proj_scale", &scales},
                                  {"d.gate_up_proj_input_scale", &odd},
                                  {"e.weight", &fp8},
                                  {"e.weight_scale", &scales},
                                  {"e.input_scale", &zero}})
                         .value();
  ASSERT_EQ(found.size(), 5u);
  const float wanted[] = {half, half, 0, 0, 0};
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(input_scale_of(found[i]).value(), wanted[i]) << found[i].name;
  }
  EXPECT_EQ(found[2].input_scale, nullptr);
  EXPECT_EQ(found[3].input_scale, &odd);
}

// As DeepSeek V4 has them: integers are codes of four bits where their scales are powers of two.
TEST(ScaledNames, ScalesBesideWeights) {
  const TensorView fp8 = tensor_of("F8_E4M3"), integers = tensor_of("I8"),
                   powers = tensor_of("F8_E8M0"), floats = tensor_of("F32");
  const auto found = find_scaled({{"a.weight", &fp8},
                                  {"a.scale", &powers},
                                  {"b.weight", &integers},
                                  {"b.scale", &powers},
                                  {"c.weight", &integers},
                                  {"c.scale", &floats}});
  ASSERT_TRUE(found.ok()) << found.status().message();
  const auto& all = found.value();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].parts.type, CodeType::kE4m3);
  EXPECT_EQ(all[0].names, (std::vector<std::string>{"a.weight", "a.scale"}));
  EXPECT_EQ(all[1].parts.type, CodeType::kE2m1);
  EXPECT_EQ(all[1].parts.scales, &powers);
  EXPECT_EQ(all[2].parts.type, CodeType::kInt8);
}

TEST(ScaledNames, CodesWithoutScalesAreNamed) {
  const TensorView fp8 = tensor_of("F8_E4M3"), bytes = tensor_of("U8");
  EXPECT_NE(
      find_scaled({{"a.weight", &fp8}}).status().message().find("'a.weight' lacks its scales"),
      std::string::npos);
  EXPECT_FALSE(find_scaled({{"a.weight_packed", &bytes}}).ok());
  EXPECT_FALSE(find_scaled({{"a_blocks", &bytes}}).ok());
  EXPECT_TRUE(find_scaled({{"a.weight", &bytes}}).value().empty());
}

// Of MLX's, which has no method's name, the scales are alone.
TEST(ScaledNames, Nvfp4WithoutItsSecondScaleIsNamed) {
  const TensorView fp8 = tensor_of("F8_E4M3"), bytes = tensor_of("U8");
  ScaledParts parts;
  parts.type = CodeType::kE2m1;
  parts.codes = &bytes;
  parts.scales = &fp8;
  Quantization quantization;
  quantization.method = "modelopt";
  EXPECT_NE(
      ScaledTensor::create(quantization, parts).status().message().find("lacks its second scale"),
      std::string::npos);
}

TEST(ScaledNames, ScalesOfActivations) {
  for (const char* name : {"a.input_scale", "a.input_global_scale", "a.o_proj.output_scale",
                           "a.input_scale_ub", "experts.down_proj_input_scale"}) {
    EXPECT_TRUE(is_activation_scale(name)) << name;
  }
  for (const char* name : {"a.k_scale", "a.v_proj.output_scale"}) {
    EXPECT_TRUE(is_attention_scale(name)) << name;
    EXPECT_FALSE(is_activation_scale(name)) << name;
  }
  EXPECT_FALSE(is_activation_scale("a.weight_scale"));
  EXPECT_FALSE(is_activation_scale("a.weight_global_scale"));
  EXPECT_FALSE(is_activation_scale("a.altup.correct_output_scale"));  // of Gemma 3n
}

}  // namespace
}  // namespace foretoken
