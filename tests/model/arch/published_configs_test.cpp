#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "model/config/config.h"

// Fields of families as their makers published them, beside those of transformers' classes, which
// the goldens have.
namespace foretoken {
namespace {

using Json = nlohmann::json;

Result<ModelConfig> parse_published(const Json& json) {
  return parse_model_config(json, Json::object(), ConfigOptions{}, "config.json");
}

Json small_decoder(const std::string& architecture) {
  return {{"architectures", {architecture}},
          {"hidden_size", 64},
          {"intermediate_size", 128},
          {"num_hidden_layers", 4},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"vocab_size", 128},
          {"max_position_embeddings", 512}};
}

TEST(PublishedConfigs, ErnieVlHasOneNumberOfTextsAndOneOfImages) {
  Json json = small_decoder("Ernie4_5_VLMoeForConditionalGeneration");
  json.update({{"moe_num_experts", {8, 8}},
               {"moe_intermediate_size", {32, 16}},
               {"moe_layer_start_index", {1, 2}},
               {"moe_layer_end_index", {3, 2}},
               {"moe_k", 2}});
  const auto config = parse_published(json);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config.value().experts.count, 8);
  EXPECT_EQ(config.value().experts.inner, 32);
  EXPECT_FALSE(config.value().layers[0].experts);
  EXPECT_TRUE(config.value().layers[3].experts);
  json["moe_intermediate_size"] = {32};
  EXPECT_NE(parse_published(json).status().message().find("'moe_intermediate_size'"),
            std::string::npos);
}

TEST(PublishedConfigs, MolmoCountsGatesAndUpsTogether) {
  Json json = small_decoder("MolmoForCausalLM");
  json.update({{"embedding_size", 256}, {"qkv_bias", true}, {"norm_after", true}});
  const auto config = parse_published(json);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config.value().intermediate_size, 64);
  EXPECT_EQ(config.value().vocab_size, 256);
  EXPECT_TRUE(config.value().attention_bias);
  EXPECT_FALSE(config.value().attention_out_bias);
  EXPECT_TRUE(config.value().norms_behind);
  EXPECT_FALSE(config.value().tie_word_embeddings);
  json["clip_qkv"] = 8.0;
  EXPECT_NE(parse_published(json).status().message().find("clip_qkv"), std::string::npos);
}

TEST(PublishedConfigs, Ling3SaysItsGatesAndLimits) {
  Json json = small_decoder("BailingMoeV3ForCausalLM");
  json.update({{"head_dim", 16},
               {"layer_group_size", 2},
               {"kv_lora_rank", 32},
               {"qk_nope_head_dim", 32},
               {"qk_rope_head_dim", 16},
               {"v_head_dim", 32},
               {"num_experts", 8},
               {"num_experts_per_tok", 2},
               {"moe_intermediate_size", 32},
               {"moe_shared_expert_intermediate_size", 96},
               {"first_k_dense_replace", 1},
               {"gated_attention_proj_granularity_type", "element_wise"},
               {"expert_swiglu_limit_list", {0, 7.0}}});
  const auto config = parse_published(json);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_FALSE(config.value().head_gates);
  EXPECT_EQ(config.value().experts.shared_inner, 96);
  EXPECT_EQ(config.value().layers[1].expert_limit, 7.0f);
  EXPECT_EQ(config.value().layers[2].expert_limit, 0.0f);
  for (const char* name : {"use_mla_nope", "use_kda_lora", "use_bias"}) {
    Json other = json;
    other[name] = true;
    EXPECT_NE(parse_published(other).status().message().find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace foretoken
