#include "model/config/index_config.h"

#include <gtest/gtest.h>

#include "model/config/config.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

Json sparse_config(int layers = 2) {
  return {{"architectures", {"GlmMoeDsaForCausalLM"}},
          {"vocab_size", 1000},
          {"hidden_size", 64},
          {"intermediate_size", 128},
          {"num_hidden_layers", layers},
          {"num_attention_heads", 4},
          {"max_position_embeddings", 4096},
          {"q_lora_rank", 24},
          {"kv_lora_rank", 512},
          {"first_k_dense_replace", layers},
          {"n_routed_experts", 8},
          {"num_experts_per_tok", 2},
          {"moe_intermediate_size", 32},
          {"index_topk", 2048},
          {"index_n_heads", 32},
          {"index_head_dim", 128}};
}

std::string sharing_of(const Json& json) {
  const auto parsed = parse_model_config(json, {}, {}, "the file");
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  std::string text;
  if (!parsed.ok()) return text;
  for (const LayerConfig& layer : parsed.value().layers) text += layer.shares_index ? 'S' : 'F';
  return text;
}

TEST(IndexConfig, SizesAndFrontsAreRead) {
  Json json = sparse_config();
  json["layer_types"] = {"deepseek_sparse_attention", "deepseek_sparse_attention"};
  const IndexConfig glm = parse_model_config(json, {}, {}, "the file").value().latent.index;
  EXPECT_EQ(glm.num_heads, 32);
  EXPECT_EQ(glm.head_dim, 128);
  EXPECT_EQ(glm.top, 2048);
  EXPECT_TRUE(glm.paired);
  for (const char* name : {"DeepseekV32ForCausalLM", "DeepseekV3ForCausalLM"}) {
    json = sparse_config();
    json["architectures"] = {name};
    EXPECT_FALSE(parse_model_config(json, {}, {}, "the file").value().latent.index.paired) << name;
  }
  json.erase("index_topk");
  EXPECT_FALSE(parse_model_config(json, {}, {}, "the file").value().latent.index.exists());
}

TEST(IndexConfig, LayersShareByListPatternOrPeriod) {
  EXPECT_EQ(sharing_of(sparse_config(4)), "FFFF");
  Json json = sparse_config(8);
  json["index_topk_freq"] = 4;
  EXPECT_EQ(sharing_of(json), "FFSSSFSS");
  json["index_skip_topk_offset"] = 3;
  EXPECT_EQ(sharing_of(json), "FFFSSSFS");
  json["index_topk_pattern"] = "FSFSFSFS";
  EXPECT_EQ(sharing_of(json), "FSFSFSFS");
  json["indexer_types"] = {"full", "full", "full", "shared", "shared", "shared", "full", "shared"};
  EXPECT_EQ(sharing_of(json), "FFFSSSFS");
}

TEST(IndexConfig, FaultsAreNamed) {
  const auto message = [](const char* name, const Json& value) {
    Json json = sparse_config();
    json[name] = value;
    const auto parsed = parse_model_config(json, {}, {}, "the file");
    EXPECT_FALSE(parsed.ok()) << name;
    return parsed.ok() ? std::string() : parsed.status().message();
  };
  for (const char* name : {"index_topk", "index_n_heads", "index_head_dim"}) {
    for (const Json& value : {Json(0), Json("many"), Json(1000000), Json(nullptr)}) {
      EXPECT_NE(message(name, value).find(name), std::string::npos) << message(name, value);
    }
  }
  EXPECT_NE(message("index_head_dim", 72).find("multiple of 16"), std::string::npos);
  EXPECT_NE(message("index_head_dim", 32).find("qk_rope_head_dim"), std::string::npos);
  EXPECT_NE(message("q_lora_rank", nullptr).find("q_lora_rank"), std::string::npos);
  EXPECT_NE(message("indexer_types", {"full"}).find("indexer_types"), std::string::npos);
  EXPECT_NE(message("indexer_types", {"full", "half"}).find("\"shared\""), std::string::npos);
  EXPECT_NE(message("index_topk_pattern", "FX").find("index_topk_pattern"), std::string::npos);
  EXPECT_NE(message("indexer_types", {"shared", "full"}).find("first layer"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
