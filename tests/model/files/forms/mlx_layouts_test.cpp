#include "model/files/forms/mlx_layouts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "model/files/forms/mlx_names.h"
#include "model/golden.h"

namespace foretoken {
namespace {

// Tensors of such names.
class NamedTensors {
 public:
  explicit NamedTensors(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      views_.push_back(std::make_unique<TensorView>());
      views_.back()->name = name;
      by_name_.emplace(name, views_.back().get());
    }
  }
  const std::map<std::string, const TensorView*>& all() const { return by_name_; }

 private:
  std::vector<std::unique_ptr<TensorView>> views_;
  std::map<std::string, const TensorView*> by_name_;
};

TEST(MlxLayouts, NamesOfFamiliesAreThoseOfTransformers) {
  const NamedTensors step({"model.layers.3.mlp.share_expert.up_proj.weight"});
  const MlxLayout* layout = find_mlx_layout(step.all());
  ASSERT_NE(layout, nullptr);
  EXPECT_TRUE(layout->whole_norms);
  EXPECT_EQ(layout->without("model.layers.3.mlp.switch_mlp.down_proj.scales"),
            "model.layers.3.moe.down_proj.scales");
  EXPECT_EQ(layout->without("model.layers.3.mlp.gate.gate.weight"),
            "model.layers.3.moe.gate.weight");
  EXPECT_EQ(layout->without("model.layers.0.mlp.gate_proj.weight"),
            "model.layers.0.mlp.gate_proj.weight");
  const NamedTensors kimi({"model.layers.0.self_attn.q_conv.conv.weight"});
  layout = find_mlx_layout(kimi.all());
  ASSERT_NE(layout, nullptr);
  EXPECT_EQ(layout->without("model.layers.0.self_attn.q_conv.conv.weight"),
            "model.layers.0.self_attn.q_conv1d.weight");
  EXPECT_EQ(layout->without("model.layers.1.mlp.e_score_correction_bias"),
            "model.layers.1.block_sparse_moe.gate.e_score_correction_bias");
  EXPECT_FALSE(layout->whole_norms);
  const NamedTensors neox({"model.h.0.attention.query_key_value.weight"});
  layout = find_mlx_layout(neox.all());
  ASSERT_NE(layout, nullptr);
  EXPECT_EQ(layout->without("model.h.1.mlp.dense_h_to_4h.bias"),
            "gpt_neox.layers.1.mlp.dense_h_to_4h.bias");
  EXPECT_EQ(layout->without("model.embed_out.weight"), "embed_out.weight");
  EXPECT_EQ(layout->without("model.embed_in.weight"), "gpt_neox.embed_in.weight");
}

// LFM 2 has the convolutions that tell MLX's names of it in any folder.
TEST(MlxLayouts, OtherFoldersHaveNone) {
  const std::string conv = "model.layers.0.conv.conv.weight";
  const NamedTensors plain({conv, "model.layers.0.feed_forward.w1.weight"});
  EXPECT_EQ(find_mlx_layout(plain.all()), nullptr);
  EXPECT_FALSE(is_sanitised_by_mlx(plain.all()));
  const NamedTensors renamed({conv, "model.layers.0.feed_forward.gate_proj.weight"});
  EXPECT_NE(find_mlx_layout(renamed.all()), nullptr);
  EXPECT_TRUE(is_sanitised_by_mlx(renamed.all()));
  const NamedTensors deepseek({"layers.0.ffn.experts.0.w1.weight"});
  EXPECT_EQ(find_mlx_layout(deepseek.all()), nullptr);
  const NamedTensors dbrx({"transformer.blocks.0.ffn.experts.0.v1.weight"});
  EXPECT_NE(find_mlx_layout(dbrx.all()), nullptr);
  const NamedTensors llama({"model.layers.0.mlp.gate_proj.weight"});
  EXPECT_EQ(find_mlx_layout(llama.all()), nullptr);
  EXPECT_FALSE(is_sanitised_by_mlx(llama.all()));
  EXPECT_TRUE(is_sanitised_by_mlx(llama.all(), ".mlp.gate_proj."));
}

// No name of a folder of transformers' is taken for one of MLX's, in any family that is tested.
TEST(MlxLayouts, FoldersOfTransformersHaveNone) {
  int num_folders = 0;
  for (const auto& folder :
       std::filesystem::directory_iterator(test::golden_folder() + "architectures")) {
    const auto file = SafetensorsFile::open((folder.path() / "model.safetensors").string());
    if (!file.ok()) continue;
    ++num_folders;
    std::map<std::string, const TensorView*> tensors;
    for (const auto& [name, tensor] : file.value()->tensors()) {
      tensors.emplace(name, &tensor);
      EXPECT_EQ(name_without_mlx(name), name) << folder.path();
    }
    EXPECT_EQ(find_mlx_layout(tensors), nullptr) << folder.path();
    EXPECT_FALSE(is_sanitised_by_mlx(tensors)) << folder.path();
  }
  EXPECT_GT(num_folders, 100);
}

}  // namespace
}  // namespace foretoken
