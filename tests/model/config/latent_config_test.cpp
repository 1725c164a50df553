#include "model/config/latent_config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/config/config.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

Json deepseek() {
  return {{"architectures", {"DeepseekV3ForCausalLM"}},
          {"vocab_size", 1000},
          {"hidden_size", 56},
          {"intermediate_size", 128},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 16},
          {"num_key_value_heads", 16},
          {"max_position_embeddings", 4096},
          {"q_lora_rank", 24},
          {"kv_lora_rank", 512},
          {"qk_nope_head_dim", 128},
          {"qk_rope_head_dim", 64},
          {"v_head_dim", 128},
          {"head_dim", 64}};
}

Result<ModelConfig> parse_latents(const Json& json) {
  return parse_model_config(json, {}, {}, "the file");
}

TEST(LatentConfig, AllHeadsShareOneEntry) {
  const auto parsed = parse_latents(deepseek());
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const ModelConfig& config = parsed.value();
  EXPECT_EQ(config.latent.q_rank, 24);
  EXPECT_EQ(config.latent.kv_rank, 512);
  EXPECT_EQ(config.latent.nope_dim, 128);
  EXPECT_EQ(config.latent.rope_dim, 64);
  EXPECT_EQ(config.latent.value_dim, 128);
  EXPECT_TRUE(config.latent.paired);
  EXPECT_EQ(config.num_heads, 16);
  EXPECT_EQ(config.num_kv_heads, 1);
  EXPECT_EQ(config.head_dim, 576) << "whatever head_dim says";
  EXPECT_EQ(config.rope.full.rotary_dim, 64);
  EXPECT_FLOAT_EQ(config.attention_scale, 1 / std::sqrt(192.0f));
}

TEST(LatentConfig, QueriesNeedNotBeCompressed) {
  Json json = deepseek();
  json["q_lora_rank"] = nullptr;
  json["rope_interleave"] = false;
  const ModelConfig config = parse_latents(json).value();
  EXPECT_EQ(config.latent.q_rank, 0);
  EXPECT_FALSE(config.latent.paired);
}

// Mistral 4 says which part of a whole head that is.
TEST(LatentConfig, AllOfTheRotaryPartTurns) {
  Json json = deepseek();
  json["rope_parameters"] = {{"rope_theta", 500.0}, {"partial_rotary_factor", 1.0 / 3}};
  json["partial_rotary_factor"] = 0.1;
  const ModelConfig config = parse_latents(json).value();
  EXPECT_EQ(config.rope.full.rotary_dim, 64);
  EXPECT_EQ(config.rope.full.theta, 500);
}

TEST(LatentConfig, YarnScalesScoresToo) {
  Json json = deepseek();
  json["rope_scaling"] = {{"type", "yarn"},  {"factor", 40},
                          {"mscale", 1.0},   {"mscale_all_dim", 0.707},
                          {"beta_fast", 32}, {"original_max_position_embeddings", 4096},
                          {"beta_slow", 1}};
  const ModelConfig config = parse_latents(json).value();
  const double all = 0.1 * 0.707 * std::log(40.0) + 1, of_angles = 0.1 * std::log(40.0) + 1;
  EXPECT_NEAR(config.attention_scale, all * all / std::sqrt(192.0), 1e-7);
  EXPECT_NEAR(config.rope.full.attention_factor, of_angles / all, 1e-7);
  json["rope_scaling"]["mscale_all_dim"] = 0;
  EXPECT_FLOAT_EQ(parse_latents(json).value().attention_scale, 1 / std::sqrt(192.0f));
  json["rope_parameters"] = json["rope_scaling"];
  json["rope_parameters"]["mscale_all_dim"] = 1;
  json.erase("rope_scaling");
  EXPECT_NEAR(parse_latents(json).value().attention_scale, of_angles * of_angles / std::sqrt(192.0),
              1e-7);
}

TEST(LatentConfig, NamesTheFieldAtFault) {
  const auto message = [](const char* name, const Json& value) {
    Json json = deepseek();
    json[name] = value;
    const auto parsed = parse_latents(json);
    EXPECT_FALSE(parsed.ok()) << name;
    return parsed.ok() ? "" : parsed.status().message();
  };
  for (const char* name :
       {"q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"}) {
    for (const Json& value : {Json(0), Json(-3), Json("many"), Json(1.5)}) {
      EXPECT_NE(message(name, value).find(std::string("'") + name + "'"), std::string::npos);
    }
  }
  EXPECT_NE(message("rope_interleave", 3).find("rope_interleave"), std::string::npos);
  EXPECT_NE(message("qk_rope_head_dim", 7).find("multiple of 2"), std::string::npos);
  EXPECT_NE(message("kv_lora_rank", 40).find("multiple of 16"), std::string::npos);
  EXPECT_NE(message("v_head_dim", 24).find("multiple of 16"), std::string::npos);
  EXPECT_NE(message("kv_lora_rank", 1024).find("the most is 576"), std::string::npos);
  EXPECT_NE(message("kv_lora_rank", nullptr).find("kv_lora_rank"), std::string::npos);
  EXPECT_NE(message("index_topk", 2048).find("index_n_heads"), std::string::npos);
  const Json empty = Json::object();
  const ConfigFields none(empty, "the file");
  EXPECT_FALSE(read_latent_config(none).value().exists());
}

TEST(LatentConfig, WhatIsMissingIsNamed) {
  for (const char* name : {"qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"}) {
    Json json = deepseek();
    json.erase(name);
    const ConfigFields fields(json, "the file");
    const auto read = read_latent_config(fields);
    ASSERT_FALSE(read.ok()) << name;
    EXPECT_NE(read.status().message().find(name), std::string::npos);
  }
}

}  // namespace
}  // namespace foretoken
