#include "model/config/compressed_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/config/config.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// The form of published files.
Json published() {
  return {{"architectures", {"DeepseekV4ForCausalLM"}},
          {"vocab_size", 1000},
          {"hidden_size", 64},
          {"moe_intermediate_size", 32},
          {"num_hidden_layers", 4},
          {"num_attention_heads", 8},
          {"head_dim", 64},
          {"qk_rope_head_dim", 16},
          {"q_lora_rank", 32},
          {"o_groups", 2},
          {"o_lora_rank", 32},
          {"n_routed_experts", 8},
          {"num_experts_per_tok", 2},
          {"scoring_func", "sqrtsoftplus"},
          {"topk_method", "noaux_tc"},
          {"num_hash_layers", 1},
          {"sliding_window", 128},
          {"compress_ratios", {0, 4, 128, 4, 0}},
          {"index_topk", 512},
          {"index_n_heads", 4},
          {"index_head_dim", 32},
          {"hc_mult", 4},
          {"hc_sinkhorn_iters", 20},
          {"hc_eps", 1e-6},
          {"compress_rope_theta", 160000},
          {"rope_scaling",
           {{"type", "yarn"},
            {"factor", 16},
            {"beta_fast", 32},
            {"beta_slow", 1},
            {"original_max_position_embeddings", 65536}}}};
}

// The same as transformers saves it.
Json saved() {
  Json json = published();
  for (const char* name : {"compress_ratios", "num_hash_layers", "rope_scaling", "qk_rope_head_dim",
                           "compress_rope_theta", "topk_method"}) {
    json.erase(name);
  }
  json["partial_rotary_factor"] = 0.25;
  json["layer_types"] = {"sliding_attention", "compressed_sparse_attention",
                         "heavily_compressed_attention", "compressed_sparse_attention"};
  json["compress_rates"] = {{"compressed_sparse_attention", 4},
                            {"heavily_compressed_attention", 128}};
  json["mlp_layer_types"] = {"hash_moe", "moe", "moe", "moe"};
  const Json scaling = published()["rope_scaling"];
  Json compress = {{"rope_type", "yarn"}, {"rope_theta", 160000.0}, {"attention_factor", 1.0}};
  for (const char* name :
       {"factor", "beta_fast", "beta_slow", "original_max_position_embeddings"}) {
    compress[name] = scaling[name];
  }
  json["rope_parameters"] = {{"main", {{"rope_type", "default"}, {"rope_theta", 10000.0}}},
                             {"compress", compress}};
  return json;
}

Result<ModelConfig> parse_compressed(const Json& json) {
  return parse_model_config(json, {}, {}, "the file");
}

TEST(CompressedConfig, BothFormsSayTheSame) {
  for (const Json& json : {published(), saved()}) {
    const auto parsed = parse_compressed(json);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    const ModelConfig& config = parsed.value();
    EXPECT_EQ(config.compressed.q_rank, 32);
    EXPECT_EQ(config.compressed.rope_dim, 16);
    EXPECT_EQ(config.compressed.groups, 2);
    EXPECT_EQ(config.compressed.index.top, 512);
    const int32_t ratios[] = {0, 4, 128, 4};
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(config.layers[i].compress, ratios[i]) << i;
      EXPECT_EQ(config.layers[i].chooses, ratios[i] == 4) << i;
      EXPECT_EQ(config.layers[i].hashed, i == 0) << i;
      EXPECT_EQ(config.layers[i].window, 128) << i;
      EXPECT_TRUE(config.layers[i].experts) << i;
    }
    EXPECT_EQ(config.rope.full.type, RopeType::kYarn);
    EXPECT_EQ(config.rope.full.theta, 160000);
    EXPECT_EQ(config.rope.full.rotary_dim, 16);
    EXPECT_EQ(config.rope.full.attention_factor, 1) << "cosines stay as they are";
    ASSERT_TRUE(config.rope.windowed.has_value());
    EXPECT_EQ(config.rope.windowed->type, RopeType::kDefault);
    EXPECT_EQ(config.rope.windowed->theta, 10000);
    EXPECT_EQ(config.rope.windowed->rotary_dim, 16);
    EXPECT_EQ(config.hyper.count, 4);
    EXPECT_EQ(config.hyper.rounds, 20);
    EXPECT_EQ(config.experts.score, ExpertScore::kSqrtSoftplus);
    EXPECT_TRUE(config.experts.correction);
    EXPECT_TRUE(config.experts.normalised);
    EXPECT_EQ(config.experts.clamp.limit, 10);
  }
}

TEST(CompressedConfig, TheFieldAtFaultIsNamed) {
  const auto message_with = [](const char* name, const Json& value) {
    Json json = published();
    json[name] = value;
    const auto parsed = parse_compressed(json);
    return parsed.ok() ? std::string("it loads") : parsed.status().message();
  };
  const auto expect_named = [&](const char* name, const Json& value, const char* part) {
    EXPECT_NE(message_with(name, value).find(part), std::string::npos) << message_with(name, value);
  };
  expect_named("compress_ratios", {0, 4}, "compress_ratios");
  expect_named("compress_ratios", {0, 4, 1, 4}, "compress_ratios");
  expect_named("compress_ratios", {2, 4, 128, 4}, "the most are 2");
  expect_named("compress_ratios", nullptr, "compress_ratios");
  expect_named("layer_types", {"full_attention", "a", "a", "a"}, "layer type");
  expect_named("o_groups", 3, "o_groups");
  expect_named("o_lora_rank", 20, "o_lora_rank");
  expect_named("head_dim", 1024, "head_dim");
  expect_named("index_topk", nullptr, "index_topk");
  expect_named("mlp_layer_types", {"dense", "moe", "moe", "moe"}, "mlp_layer_types");
  expect_named("hc_mult", 9, "hc_mult");
}

}  // namespace
}  // namespace foretoken
