#include "model/config/expert_config.h"

#include <gtest/gtest.h>

#include "model/config/config.h"
#include "model/files/containers/json_file.h"
#include "support/folders.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

Json mixture_file(const char* architecture) {
  return {{"architectures", {architecture}},
          {"vocab_size", 1000},
          {"hidden_size", 1024},
          {"intermediate_size", 128},
          {"num_hidden_layers", 6},
          {"num_attention_heads", 8},
          {"num_key_value_heads", 8},
          {"max_position_embeddings", 4096}};
}

Result<ModelConfig> parse_mixture(const Json& json) {
  return parse_model_config(json, {}, {}, "the file");
}

ModelConfig parsed_mixture(const Json& json) {
  auto config = parse_mixture(json);
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? std::move(config).value() : ModelConfig{};
}

// "010101": which layers have experts.
std::string expert_pattern(const ModelConfig& config) {
  std::string text;
  for (const LayerConfig& layer : config.layers) text += layer.experts ? '1' : '0';
  return text;
}

Json with_fields(Json json, const Json& more) {
  json.update(more);
  return json;
}

TEST(ExpertConfig, FieldsHaveTheNamesOfEachFamily) {
  const ModelConfig mixtral =
      parsed_mixture(with_fields(mixture_file("MixtralForCausalLM"), {{"num_local_experts", 4}}));
  EXPECT_EQ(mixtral.experts.count, 4);
  EXPECT_EQ(mixtral.experts.top_k, 2);
  EXPECT_EQ(mixtral.experts.inner, 128);
  EXPECT_TRUE(mixtral.experts.normalised);
  EXPECT_EQ(expert_pattern(mixtral), "111111");

  const ModelConfig glm = parsed_mixture(
      with_fields(mixture_file("Glm4MoeForCausalLM"), {{"n_routed_experts", 32},
                                                       {"num_experts_per_tok", 4},
                                                       {"moe_intermediate_size", 64},
                                                       {"n_shared_experts", 2},
                                                       {"routed_scaling_factor", 2.5}}));
  EXPECT_EQ(glm.experts.shared_inner, 128);
  EXPECT_EQ(glm.experts.score, ExpertScore::kSigmoid);
  EXPECT_EQ(glm.experts.groups, ExpertGroups::kBestTwo);
  EXPECT_TRUE(glm.experts.correction);
  EXPECT_EQ(glm.experts.scale, 2.5f);
  EXPECT_EQ(expert_pattern(glm), "011111");

  const ModelConfig ernie = parsed_mixture(with_fields(mixture_file("Ernie4_5_MoeForCausalLM"),
                                                       {{"moe_num_experts", 16}, {"moe_k", 3}}));
  EXPECT_EQ(ernie.experts.top_k, 3);
  EXPECT_EQ(ernie.experts.score, ExpertScore::kSoftmax);
  EXPECT_EQ(ernie.experts.shared_inner, 2 * 1536);

  const ModelConfig hunyuan = parsed_mixture(with_fields(
      mixture_file("HunYuanMoEV1ForCausalLM"), {{"num_experts", 8},
                                                {"moe_topk", {2, 2, 2, 2, 2, 2}},
                                                {"moe_intermediate_size", {64, 64, 64, 64, 64, 64}},
                                                {"num_shared_expert", {1, 1, 1, 1, 1, 1}}}));
  EXPECT_EQ(hunyuan.experts.top_k, 2);
  EXPECT_EQ(hunyuan.experts.inner, 64);
  EXPECT_EQ(hunyuan.experts.shared_inner, 128);

  const ModelConfig llama = parsed_mixture(
      with_fields(mixture_file("Llama4ForCausalLM"),
                  {{"intermediate_size_mlp", 256}, {"interleave_moe_layer_step", 2}}));
  EXPECT_EQ(llama.experts.inner, 128);
  EXPECT_EQ(llama.experts.shared_inner, 128);
  EXPECT_EQ(llama.intermediate_size, 256);
  EXPECT_EQ(expert_pattern(llama), "010101");
}

// Newer versions of transformers write Qwen's number of experts under another name, before which
// the architecture's default does not go.
TEST(ExpertConfig, NoDefaultGoesBeforeAnotherName) {
  const ModelConfig qwen = parsed_mixture(with_fields(
      mixture_file("Qwen3MoeForCausalLM"), {{"num_local_experts", 8}, {"num_experts_per_tok", 2}}));
  EXPECT_EQ(qwen.experts.count, 8);
  EXPECT_EQ(qwen.experts.top_k, 2);
}

// An architecture that may have experts need not have any.
TEST(ExpertConfig, NoExperts) {
  const ModelConfig dense =
      parsed_mixture(with_fields(mixture_file("Qwen3MoeForCausalLM"), {{"num_experts", 0}}));
  EXPECT_EQ(dense.experts.count, 0);
  EXPECT_EQ(expert_pattern(dense), "000000");
}

TEST(ExpertConfig, WhichLayersHaveSome) {
  const std::pair<Json, const char*> cases[] = {
      {{{"decoder_sparse_step", 2}}, "010101"},
      {{{"mlp_only_layers", {0, 4}}}, "011101"},
      {{{"decoder_sparse_step", 3}, {"mlp_only_layers", {2}}}, "000001"},
      {{{"first_k_dense_replace", 2}}, "001111"},
      {{{"first_k_dense_replace", 1}, {"moe_layer_freq", 2}}, "001010"},
      {{{"moe_layer_freq", {0, 1, 1, 0, 1, 1}}}, "011011"},
      {{{"moe_layers", {1, 5}}}, "010001"},
      {{{"moe_layers", Json::array()}}, "000000"},
      {{{"interleave_moe_layer_step", 0}}, "000000"},
      {{{"moe_layer_start_index", 1}, {"moe_layer_end_index", 4}}, "011110"},
      {{{"moe_layer_interval", 3}, {"moe_layer_end_index", -1}}, "001001"},
      {{{"mlp_layer_types", {"dense", "sparse", "sparse", "dense", "sparse", "sparse"}},
        {"first_k_dense_replace", 4}},
       "011011"}};
  for (const auto& [fields, wanted] : cases) {
    EXPECT_EQ(
        expert_pattern(parsed_mixture(with_fields(mixture_file("Qwen3MoeForCausalLM"), fields))),
        wanted)
        << fields;
  }
}

// Every malformed field: one sentence that names it.
TEST(ExpertConfig, WhatDoesNotFitIsNamed) {
  const Json base = with_fields(mixture_file("Glm4MoeForCausalLM"), {{"n_routed_experts", 32},
                                                                     {"num_experts_per_tok", 4},
                                                                     {"moe_intermediate_size", 64},
                                                                     {"n_shared_experts", 1}});
  const std::pair<Json, const char*> cases[] = {
      {{{"n_routed_experts", -1}}, "'n_routed_experts' is -1"},
      {{{"n_routed_experts", "many"}}, "'n_routed_experts' is \"many\""},
      {{{"n_routed_experts", 2048}}, "the most are 1024 experts"},
      {{{"num_experts_per_tok", 0}}, "'num_experts_per_tok' is 0"},
      {{{"num_experts_per_tok", 33}}, "32 for each token"},
      {{{"n_routed_experts", 2}}, "'num_experts_per_tok' 4 is more than 'n_routed_experts' 2"},
      {{{"num_experts_per_tok", nullptr}}, "'num_experts_per_tok' is missing"},
      {{{"moe_intermediate_size", 0}}, "'moe_intermediate_size' is 0"},
      {{{"n_shared_experts", 1 << 23}}, "'n_shared_experts'"},
      {{{"n_group", 5}}, "'n_group' 5 does not divide 'n_routed_experts' 32"},
      {{{"n_group", 4}, {"topk_group", 5}}, "'topk_group' 5 is more than 'n_group' 4"},
      {{{"n_group", 16}, {"topk_group", 1}}, "'topk_group' 1 leaves fewer experts"},
      {{{"routed_scaling_factor", 0}}, "'routed_scaling_factor' is 0"},
      {{{"norm_topk_prob", 1}}, "'norm_topk_prob' is 1"},
      {{{"scoring_func", "tanh"}}, "scoring_func \"tanh\""},
      {{{"topk_method", "best"}}, "topk_method \"best\""},
      {{{"first_k_dense_replace", -2}}, "'first_k_dense_replace' is -2"},
      {{{"moe_layer_freq", {1, 0}}}, "'moe_layer_freq'"},
      {{{"moe_layer_freq", {0, 1, 2, 1, 1, 1}}}, "'moe_layer_freq'"},
      {{{"moe_layer_freq", 0}}, "'moe_layer_freq' is 0"},
      {{{"mlp_only_layers", {-1}}}, "'mlp_only_layers'"},
      {{{"mlp_layer_types", {"dense"}}}, "'mlp_layer_types'"}};
  for (const auto& [fields, wanted] : cases) {
    const auto config = parse_mixture(with_fields(base, fields));
    ASSERT_FALSE(config.ok()) << fields;
    const std::string& message = config.status().message();
    EXPECT_NE(message.find(wanted), std::string::npos) << message;
    EXPECT_NE(message.find("the file"), std::string::npos) << message;
  }
  const auto uneven =
      parse_mixture(with_fields(mixture_file("HunYuanMoEV1ForCausalLM"),
                                {{"num_experts", 8}, {"moe_topk", {1, 2, 1, 1, 1, 1}}}));
  ASSERT_FALSE(uneven.ok());
  EXPECT_NE(uneven.status().message().find("'moe_topk' that differs between layers"),
            std::string::npos)
      << uneven.status().message();
}

// Their experts pass silu whatever the file says, so that one that says otherwise is no other
// model.
TEST(ExpertConfig, FamiliesWhoseGatesAreCutWantSilu) {
  for (const char* name : {"hy_v4", "deepseek_v4"}) {
    Json config = read_json_file(std::string(kSourceFolder) + "/tests/golden/architectures/" +
                                 name + "/config.json")
                      .value();
    config["hidden_act"] = "gelu";
    const auto refused = parse_model_config(config, Json::object(), {}, "f");
    EXPECT_EQ(refused.status().code(), StatusCode::kUnsupported);
    EXPECT_NE(refused.status().message().find("cut at swiglu_limit"), std::string::npos);
  }
}

}  // namespace
}  // namespace foretoken
