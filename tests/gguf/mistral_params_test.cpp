#include "gguf/mistral_params.h"

#include <gtest/gtest.h>

#include "gguf/model_texts.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

constexpr const char* kMistralParams =
    R"({"dim": 64, "n_layers": 2, "head_dim": 16, "hidden_dim": 128, "n_heads": 4, "n_kv_heads": 2,
        "norm_eps": 1e-5, "vocab_size": 300, "rope_theta": 1000000.0, "moe": null, "causal": true})";

TEST(MistralParams, AreAConfigOfTransformers) {
  const test::ScratchFolder folder;
  folder.write("params.json", kMistralParams);
  EXPECT_FALSE(has_mistral_params(folder.path()));
  folder.write("consolidated.safetensors", "x");
  EXPECT_TRUE(has_mistral_params(folder.path()));
  EXPECT_TRUE(has_model_text(folder.path(), "config.json"));
  const auto text = read_model_text(folder.path(), "config.json").value();
  ASSERT_TRUE(text.has_value());
  const auto config = nlohmann::json::parse(*text);
  EXPECT_EQ(config["architectures"][0], "MistralForCausalLM");
  EXPECT_EQ(config["hidden_size"], 64);
  EXPECT_EQ(config["intermediate_size"], 128);
  EXPECT_EQ(config["num_key_value_heads"], 2);
  EXPECT_EQ(config["rope_theta"], 1000000.0);
  EXPECT_EQ(config["max_position_embeddings"], 32768);
  EXPECT_FALSE(config.contains("causal"));
  folder.write("config.json", "{}");
  EXPECT_FALSE(has_mistral_params(folder.path()));
  const test::ScratchFolder several;
  several.write("params.json", kMistralParams);
  several.write("consolidated.safetensors.index.json", "{}");
  EXPECT_TRUE(has_mistral_params(several.path()));
}

nlohmann::json config_with(const nlohmann::json& more) {
  const test::ScratchFolder folder;
  nlohmann::json params = nlohmann::json::parse(kMistralParams);
  params.update(more);
  folder.write("params.json", params.dump());
  return mistral_config(folder.path()).value();
}

Status refusal_with(const nlohmann::json& more) {
  const test::ScratchFolder folder;
  nlohmann::json params = nlohmann::json::parse(kMistralParams);
  params.update(more);
  folder.write("params.json", params.dump());
  return mistral_config(folder.path()).status();
}

const nlohmann::json kYarn = {{"factor", 16},
                              {"original_max_position_embeddings", 16384},
                              {"beta", 32},
                              {"alpha", 1},
                              {"apply_scale", false}};
const nlohmann::json kGrowth = {{"original_max_position_embeddings", 16384}, {"beta", 0.1}};
const nlohmann::json kLatent = {{"q_lora_rank", 32},
                                {"kv_lora_rank", 32},
                                {"qk_nope_head_dim", 16},
                                {"qk_rope_head_dim", 16},
                                {"v_head_dim", 16},
                                {"moe",
                                 {{"num_experts", 8},
                                  {"num_experts_per_tok", 4},
                                  {"num_shared_experts", 1},
                                  {"expert_hidden_dim", 32},
                                  {"routed_scale", 1.5},
                                  {"expert_parallel", 1},
                                  {"expert_model_parallel", 8},
                                  {"renorm_strategy", "WEIGHTS"},
                                  {"route_every_n", 1}}}};

nlohmann::json both(nlohmann::json left, const nlohmann::json& right) {
  left.update(right);
  return left;
}

TEST(MistralParams, MixturesOfTheFirstGenerationAreMixtrals) {
  const auto config = config_with({{"moe", {{"num_experts", 8}, {"num_experts_per_tok", 2}}}});
  EXPECT_EQ(config["architectures"][0], "MixtralForCausalLM");
  EXPECT_EQ(config["num_local_experts"], 8);
  EXPECT_EQ(config["num_experts_per_tok"], 2);
  EXPECT_FALSE(config.contains("n_routed_experts"));
}

TEST(MistralParams, LatentAttentionWithExpertsIsThatOfMistral4) {
  const auto config = config_with(both(kLatent, {{"yarn", kYarn}, {"llama_4_scaling", kGrowth}}));
  EXPECT_EQ(config["architectures"][0], "Mistral4ForCausalLM");
  EXPECT_EQ(config["n_routed_experts"], 8);
  EXPECT_EQ(config["n_shared_experts"], 1);
  EXPECT_EQ(config["moe_intermediate_size"], 32);
  EXPECT_EQ(config["routed_scaling_factor"], 1.5);
  EXPECT_EQ(config["norm_topk_prob"], true);
  EXPECT_EQ(config["rope_parameters"]["factor"], 16);
  EXPECT_EQ(config["rope_parameters"]["beta_fast"], 32);
  EXPECT_EQ(config["rope_parameters"]["beta_slow"], 1);
  EXPECT_EQ(config["rope_parameters"]["llama_4_scaling_beta"], 0.1);
  EXPECT_EQ(config["rope_parameters"]["rope_theta"], 1000000.0);
  const auto coded = config_with(both(
      kLatent, {{"quantization", {{"qformat_weight", "fp8_e4m3"}, {"qscheme_act", "TENSOR"}}}}));
  EXPECT_EQ(coded["quantization_config"]["quant_method"], "fp8");
  EXPECT_EQ(coded["quantization_config"]["activation_scheme"], "static");
}

TEST(MistralParams, CodesAreMistralsOwnOrThoseOfCompressedTensors) {
  const auto own = config_with({{"quantization", {{"qformat_weight", "fp8_e4m3"}}}});
  EXPECT_EQ(own["architectures"][0], "MistralForCausalLM");
  EXPECT_EQ(own["quantization_config"]["activation_scheme"], "static");
  const auto free = config_with(
      {{"quantization", {{"qformat_weight", "fp8_e4m3"}, {"qscheme_act", "NO_SCALES"}}}});
  EXPECT_EQ(free["quantization_config"]["activation_scheme"], "dynamic");
  const nlohmann::json blocks = {{"quant_method", "compressed_tensors"},
                                 {"format", "float-quantized"},
                                 {"config_groups", {{"group_0", {{"weights", nullptr}}}}}};
  for (const char* name : {"quantization", "quantization_config"}) {
    const auto config = config_with(both(kLatent, {{name, blocks}}));
    EXPECT_EQ(config["quantization_config"]["quant_method"], "compressed-tensors") << name;
    EXPECT_EQ(config["quantization_config"]["config_groups"], blocks["config_groups"]) << name;
  }
}

TEST(MistralParams, DenseModelsWhoseQueriesGrowAreMinistral3) {
  const auto config = config_with({{"yarn", kYarn},
                                   {"llama_4_scaling", kGrowth},
                                   {"tied_embeddings", true},
                                   {"vision_encoder", {{"hidden_size", 8}}}});
  EXPECT_EQ(config["architectures"][0], "Ministral3ForCausalLM");
  EXPECT_EQ(config["tie_word_embeddings"], true);
  const auto sized = config_with({{"max_seq_len", 1}, {"max_position_embeddings", 262144}});
  EXPECT_EQ(sized["max_position_embeddings"], 262144);
  EXPECT_FALSE(config.contains("vision_encoder"));
}

TEST(MistralParams, WhatIsNotReadIsNamed) {
  const nlohmann::json other = {{"quant_method", "awq"}};
  nlohmann::json scaled = kYarn;
  scaled["apply_scale"] = true;
  const std::pair<const char*, nlohmann::json> cases[] = {
      {"multimodal", {{"multimodal", {{"whisper_model_args", 1}}}}},
      {"quantization", {{"quantization", other}}},
      {"quantization_config", {{"quantization_config", other}}},
      {"quantization", both(kLatent, {{"quantization", {{"qformat_weight", "int4"}}}})},
      {"qk_nope_head_dim", {{"qk_nope_head_dim", 16}}},
      {"moe", {{"moe", {{"num_experts", 8}, {"num_shared_experts", 1}}}}},
      {"moe.expert_hidden_dim", {{"moe", {{"num_experts", 8}, {"expert_hidden_dim", 1}}}}},
      {"moe.num_expert_groups", {{"moe", {{"num_experts", 8}, {"num_expert_groups", 2}}}}},
      {"moe.renorm_strategy", {{"moe", {{"num_experts", 8}, {"renorm_strategy", "LOGITS"}}}}},
      {"moe.route_every_n", {{"moe", {{"num_experts", 8}, {"route_every_n", 2}}}}},
      {"yarn.apply_scale", {{"yarn", scaled}}},
      {"yarn", {{"yarn", kYarn}, {"moe", {{"num_experts", 8}, {"num_experts_per_tok", 2}}}}},
      {"llama_4_scaling", {{"llama_4_scaling", kGrowth}}},
      {"causal", {{"causal", false}}},
      {"activation", {{"activation", "gelu"}}},
      {"lora", {{"lora", {{"rank", 8}}}}}};
  for (const auto& [field, params] : cases) {
    const Status status = refusal_with(params);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << field;
    EXPECT_NE(status.message().find("'" + std::string(field) + "' is not read in Mistral's own"),
              std::string::npos)
        << status.message();
  }
}

}  // namespace
}  // namespace foretoken
