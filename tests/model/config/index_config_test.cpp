#include "model/config/index_config.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

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

// As vLLM reads published files, and transformers those with vision; its class for texts alone
// turns halves, which a file may ask for.
TEST(IndexConfig, Hy4TurnsPairsWhereItsFileSaysNothing) {
  for (const char* name : {"HYV4ForCausalLM", "HYV4VLForConditionalGeneration"}) {
    Json json = sparse_config();
    json["architectures"] = {name};
    const auto turns_pairs = [&] {
      const auto parsed = parse_model_config(json, {}, {}, "the file");
      EXPECT_TRUE(parsed.ok()) << parsed.status().message();
      if (!parsed.ok()) return std::pair(false, false);
      const LatentConfig& latent = parsed.value().latent;
      EXPECT_TRUE(latent.index.turns_last);
      return std::pair(latent.paired, latent.index.paired);
    };
    EXPECT_EQ(turns_pairs(), std::pair(true, true)) << name;
    json["rope_interleave"] = false;
    EXPECT_EQ(turns_pairs(), std::pair(false, false)) << name;
  }
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

Json block_config() {
  return {{"architectures", {"MiniMaxM3ForCausalLM"}},
          {"vocab_size", 1000},
          {"hidden_size", 64},
          {"intermediate_size", 32},
          {"dense_intermediate_size", 96},
          {"num_hidden_layers", 3},
          {"num_attention_heads", 8},
          {"num_key_value_heads", 4},
          {"head_dim", 32},
          {"rotary_dim", 16},
          {"moe_layer_freq", {0, 1, 1}},
          {"num_local_experts", 8},
          {"hidden_act", "swigluoai"},
          {"sparse_attention_config",
           {{"sparse_attention_freq", {0, 1, 0}},
            {"sparse_disable_index_value", {0, 1, 0}},
            {"sparse_num_index_heads", 4},
            {"sparse_index_dim", 32},
            {"sparse_block_size", 128},
            {"sparse_topk_blocks", 16},
            {"sparse_init_block", 0},
            {"sparse_local_block", 1}}}};
}

void expect_blocks(const Json& json) {
  const auto parsed = parse_model_config(json, {}, {}, "the file");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const ModelConfig& config = parsed.value();
  EXPECT_EQ(config.block_index.head_dim, 32);
  EXPECT_EQ(config.block_index.block, 128);
  EXPECT_EQ(config.block_index.top, 16);
  EXPECT_EQ(config.block_index.first, 0);
  EXPECT_EQ(config.block_index.nearest, 1);
  EXPECT_FALSE(config.layers[0].chooses_blocks);
  EXPECT_TRUE(config.layers[1].chooses_blocks);
  EXPECT_FALSE(config.layers[2].chooses_blocks);
  EXPECT_EQ(config.layers[0].intermediate_size, 96);
  EXPECT_EQ(config.rope.full.rotary_dim, 16);
}

// As published, and as transformers writes it.
TEST(BlockIndexConfig, SizesAndLayersAreRead) {
  expect_blocks(block_config());
  Json json = block_config();
  json.erase("sparse_attention_config");
  EXPECT_FALSE(parse_model_config(json, {}, {}, "the file").value().is_sparse());
  json["layer_types"] = {"full_attention", "minimax_m3_sparse", "full_attention"};
  for (const auto& [name, value] :
       {std::pair("index_n_heads", 4), std::pair("index_head_dim", 32),
        std::pair("index_block_size", 128), std::pair("index_topk_blocks", 16),
        std::pair("index_local_blocks", 1)}) {
    json[name] = value;
  }
  expect_blocks(json);
  json = block_config();
  json["sparse_attention_config"]["use_sparse_attention"] = false;
  EXPECT_FALSE(parse_model_config(json, {}, {}, "the file").value().is_sparse());
}

TEST(BlockIndexConfig, FaultsAreNamed) {
  const auto message = [](const char* name, const Json& value) {
    Json json = block_config();
    json["sparse_attention_config"][name] = value;
    const auto parsed = parse_model_config(json, {}, {}, "the file");
    EXPECT_FALSE(parsed.ok()) << name;
    return parsed.ok() ? std::string() : parsed.status().message();
  };
  for (const auto& [name, value, part] :
       {std::tuple("sparse_num_index_heads", Json(2), "num_key_value_heads, 4"),
        std::tuple("sparse_index_dim", Json(40), "multiple of 16"),
        std::tuple("sparse_block_size", Json(2), "at least num_key_value_heads"),
        std::tuple("sparse_topk_blocks", Json(2000), "the most is 1024"),
        std::tuple("sparse_init_block", Json(16), "more than"),
        std::tuple("sparse_score_type", Json("lse"), "supported: max"),
        std::tuple("sparse_disable_index_value", Json({0, 0, 0}), "indexers with values"),
        std::tuple("sparse_attention_freq", Json({1}), "a list of 0 or 1")}) {
    EXPECT_NE(message(name, value).find(name), std::string::npos) << message(name, value);
    EXPECT_NE(message(name, value).find(part), std::string::npos) << message(name, value);
  }
}

}  // namespace
}  // namespace foretoken
