#include "model/files/forms/mlx_names.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using Json = nlohmann::json;

TEST(MlxNames, AreThoseOfTransformers) {
  EXPECT_EQ(name_without_mlx("model.layers.3.mlp.switch_mlp.gate_proj.scales"),
            "model.layers.3.mlp.experts.gate_proj.scales");
  EXPECT_EQ(name_without_mlx("backbone.layers.1.mixer.switch_mlp.fc2.weight"),
            "backbone.layers.1.mixer.experts.down_proj.weight");
  EXPECT_EQ(name_without_mlx("model.layers.0.experts.switch_glu.up_proj.biases"),
            "model.layers.0.experts.up_proj.biases");
  EXPECT_EQ(name_without_mlx("model.layers.0.mlp.gate.weight"), "model.layers.0.mlp.gate.weight");
}

TEST(MlxNames, FindWhatConfigsSay) {
  EXPECT_EQ(mlx_quantization(Json::parse(R"({"quantization": {"quant_algo": "FP8"}})")), nullptr);
  EXPECT_EQ(
      mlx_quantization(Json::parse(
          R"({"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 8}})")),
      nullptr);
  for (const char* name : {"quantization", "quantization_config"}) {
    Json config;
    config[name] = {{"group_size", 64}, {"bits", 4}};
    ASSERT_NE(mlx_quantization(config), nullptr);
    config[name]["quant_method"] = "metal";
    ASSERT_NE(mlx_quantization(config), nullptr);
  }
}

TensorView mlx_tensor_of(const char* name, const char* type, std::vector<int64_t> shape) {
  TensorView view;
  view.name = name;
  view.file = "file";
  view.dtype_name = type;
  view.shape = std::move(shape);
  return view;
}

// A module's own entry is found by the name that the file has.
TEST(MlxNames, HaveGroupsOfTheirOwn) {
  const TensorView codes = mlx_tensor_of("language_model.a.weight", "U32", {2, 8});
  const TensorView scales = mlx_tensor_of("language_model.a.scales", "BF16", {2, 2});
  std::map<std::string, const TensorView*> tensors = {
      {"a.weight", &codes}, {"a.scales", &scales}, {"a.biases", &scales}};
  const Json own = Json::parse(
      R"({"group_size": 64, "bits": 4, "language_model.a": {"group_size": 32, "bits": 8}})");
  const auto found = find_mlx(tensors, own);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found.value().size(), 1u);
  EXPECT_EQ(found.value()[0].group, 32);
  EXPECT_EQ(found.value()[0].names.size(), 3u);
  EXPECT_EQ(find_mlx(tensors, Json::parse(R"({"group_size": 64})")).value()[0].group, 64);
  const auto unnamed = find_mlx(tensors, Json::object());
  EXPECT_NE(unnamed.status().message().find("'group_size'"), std::string::npos);
  tensors.emplace("a.global_scale", &scales);
  EXPECT_NE(find_mlx(tensors, own).status().message().find("global scale"), std::string::npos);
  tensors = {{"a.weight", &codes}};
  EXPECT_NE(find_mlx(tensors, own).status().message().find("lacks its scales"), std::string::npos);
}

TEST(MlxNames, TellFoldersByTheirConvolutions) {
  const TensorView turned = mlx_tensor_of("c", "BF16", {8, 4, 1}),
                   plain = mlx_tensor_of("c", "BF16", {8, 1, 4});
  EXPECT_TRUE(has_turned_convolutions({{"layers.0.linear_attn.conv1d.weight", &turned}}));
  EXPECT_FALSE(has_turned_convolutions({{"layers.0.linear_attn.conv1d.weight", &plain}}));
  EXPECT_TRUE(is_whole_mlx_norm("model.layers.0.input_layernorm.weight"));
  EXPECT_FALSE(is_whole_mlx_norm("model.layers.0.linear_attn.norm.weight"));
}

// bytes of words have the order that compressed-tensors' codes have.
TEST(MlxNames, WordsAreBytes) {
  const TensorView bytes = bytes_of_words(mlx_tensor_of("a", "U32", {2, 8}));
  EXPECT_EQ(bytes.dtype_name, "U8");
  EXPECT_EQ(bytes.shape, (std::vector<int64_t>{2, 32}));
}

}  // namespace
}  // namespace foretoken
