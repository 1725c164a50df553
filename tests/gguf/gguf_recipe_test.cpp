#include "gguf/gguf_recipe.h"

#include <gtest/gtest.h>

#include <string>

namespace foretoken {
namespace {

std::string type(const char* recipe, std::string_view name, std::vector<int64_t> shape,
                 int32_t layer = 0, bool is_output = false) {
  const auto found = type_of(*find_gguf_recipe(recipe), {name, shape, layer, is_output}, 16);
  return found.ok() ? std::string(found.value()->name) : found.status().message();
}

TEST(GgufRecipe, TypesOfTensors) {
  EXPECT_EQ(find_gguf_recipe("q9_k"), nullptr);
  EXPECT_EQ(type("q4_k", "blk.0.attn_norm.weight", {256}), "F32");
  EXPECT_EQ(type("q4_k", "blk.0.attn_q.weight", {2, 256}), "Q4_K");
  EXPECT_EQ(type("q4_0", "token_embd.weight", {2, 256}, -1), "Q4_0");
  EXPECT_EQ(type("q4_0", "token_embd.weight", {2, 256}, -1, true), "Q6_K");
  EXPECT_EQ(type("q4_0", "output.weight", {2, 96}, -1, true), "Q8_0");
  EXPECT_EQ(type("q8_0", "output.weight", {2, 96}, -1, true), "Q8_0");
}

TEST(GgufRecipe, ExpertsMayHaveAnother) {
  EXPECT_EQ(type("mxfp4_moe", "blk.0.ffn_up_exps.weight", {4, 2, 64}), "MXFP4");
  EXPECT_EQ(type("mxfp4_moe", "model.layers.0.mlp.experts.gate_up_proj", {4, 2, 64}), "MXFP4");
  EXPECT_EQ(type("mxfp4_moe", "blk.0.attn_q.weight", {2, 64}), "Q8_0");
  EXPECT_EQ(type("mxfp4_moe", "output.weight", {2, 64}, -1, true), "Q8_0");
  EXPECT_EQ(type("q4_0", "blk.0.ffn_up_exps.weight", {4, 2, 64}), "Q4_0");
}

TEST(GgufRecipe, NamesOfHuggingFaceAndBytes) {
  EXPECT_EQ(type("q4_k_m", "model.layers.0.mlp.down_proj.weight", {2, 256}), "Q6_K");
  EXPECT_EQ(type("q4_k_m", "model.layers.0.self_attn.v_proj.weight", {2, 256}), "Q6_K");
  EXPECT_EQ(type("q4_k_m", "model.layers.0.mlp.up_proj.weight", {2, 256}), "Q4_K");
  EXPECT_EQ(matrices_bytes(*find_gguf_recipe("q8_0"), 64), 68);
  EXPECT_EQ(matrices_bytes(*find_gguf_recipe("q4_k_m"), 512), 288);
}

// Of 16 layers Q4_K_M gives more bits to 0, 1, 4, 7, 10, 13, 14 and 15.
TEST(GgufRecipe, TheMixOfQ4KM) {
  std::string layers;
  for (int32_t i = 0; i < 16; ++i) {
    const std::string name = "blk." + std::to_string(i) + ".ffn_down.weight";
    layers += type("q4_k_m", name, {2, 256}, i) == "Q6_K" ? 'x' : '.';
    EXPECT_EQ(type("q4_k_m", "blk.0.attn_v.weight", {2, 256}, i),
              type("q4_k_m", name, {2, 256}, i));
    EXPECT_EQ(type("q4_k_m", "blk.0.attn_q.weight", {2, 256}, i), "Q4_K");
  }
  EXPECT_EQ(layers, "xx..x..x..x..xxx");
}

TEST(GgufRecipe, ShortRowsHaveBlocksOf32) {
  EXPECT_EQ(type("q4_k", "blk.0.ffn_down.weight", {2, 96}), "Q5_0");
  EXPECT_EQ(type("q5_k", "blk.0.ffn_down.weight", {2, 96}), "Q5_1");
  EXPECT_EQ(type("q6_k", "blk.0.ffn_down.weight", {2, 96}), "Q8_0");
  EXPECT_EQ(type("iq4_nl", "blk.0.ffn_down.weight", {2, 96}), "IQ4_NL");
}

TEST(GgufRecipe, RowsOfOtherLengthsAreNamed) {
  EXPECT_NE(type("q8_0", "blk.0.ffn_down.weight", {2, 48}).find("choose --type bf16 or f16"),
            std::string::npos);
  EXPECT_NE(type("q8_0", "blk.0.ffn_down.weight", {2, 48}).find("ffn_down.weight has rows of 48"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
