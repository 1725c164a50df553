#include "model/config/architecture.h"

#include <gtest/gtest.h>

#include <set>

#include "model/config/config.h"
#include "model/registry.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

ModelConfig parsed_config(const Json& json) {
  auto config = parse_model_config(json, Json::object(), {}, "config.json");
  FT_CHECK_MSG(config.ok(), config.status().message());
  return std::move(config).value();
}

// What every config.json has.
Json file_of(const char* name) {
  return {{"architectures", {name}},  {"vocab_size", 1000},      {"hidden_size", 1024},
          {"intermediate_size", 128}, {"num_hidden_layers", 12}, {"num_attention_heads", 32},
          {"num_key_value_heads", 8}};
}

TEST(Architecture, EachHasItsOwnNameAndReadableDefaults) {
  std::set<std::string> names;
  for (const Architecture& architecture : architectures()) {
    EXPECT_TRUE(names.insert(architecture.name).second) << architecture.name;
    EXPECT_TRUE(Json::parse(architecture.defaults).is_object());
    EXPECT_NE(std::string(architecture.description), "");
    EXPECT_NE(architecture.decoder.places[0].body, nullptr);
  }
  EXPECT_GE(names.size(), 22u);
}

TEST(Architecture, DefaultsFillWhatAFileLeavesOut) {
  const ModelConfig gemma = parsed_config(file_of("Gemma2ForCausalLM"));
  EXPECT_EQ(gemma.head_dim, 256);
  EXPECT_EQ(gemma.attention_softcap, 50);
  EXPECT_EQ(gemma.logits_softcap, 30);
  EXPECT_EQ(gemma.attention_scale, 1.0f / 16);
  EXPECT_EQ(gemma.activation, Activation::kGeluTanh);
  EXPECT_TRUE(gemma.tie_word_embeddings);
  EXPECT_EQ(gemma.layers[0].window, 4096);
  EXPECT_EQ(gemma.layers[1].window, 0);

  EXPECT_EQ(parsed_config(file_of("MistralForCausalLM")).layers[3].window, 4096);
  EXPECT_EQ(parsed_config(file_of("Qwen3ForCausalLM")).head_dim, 128);
  EXPECT_EQ(parsed_config(file_of("Qwen2ForCausalLM")).layers[11].window, 0);
  EXPECT_EQ(parsed_config(file_of("Phi3ForCausalLM")).layers[0].window, 0);

  const ModelConfig smol = parsed_config(file_of("SmolLM3ForCausalLM"));
  EXPECT_EQ(smol.rope.full.theta, 2e6);
  EXPECT_TRUE(smol.layers[2].rope);
  EXPECT_FALSE(smol.layers[3].rope);
}

TEST(Architecture, FieldsOfAnotherNameAreRead) {
  Json file = file_of("InternLM3ForCausalLM");
  file["qkv_bias"] = true;
  file["bias"] = false;
  const ModelConfig config = parsed_config(file);
  EXPECT_TRUE(config.attention_bias);
  EXPECT_FALSE(config.attention_out_bias);
  EXPECT_FALSE(config.mlp_bias);
}

TEST(Architecture, Exaone4TurnsByWindows) {
  Json file = file_of("Exaone4ForCausalLM");
  file["sliding_window"] = 64;
  file["sliding_window_pattern"] = "LLLG";
  const ModelConfig hybrid = parsed_config(file);
  EXPECT_EQ(hybrid.layers[2].window, 64);
  EXPECT_TRUE(hybrid.layers[2].rope);
  EXPECT_EQ(hybrid.layers[3].window, 0);
  EXPECT_FALSE(hybrid.layers[3].rope);
  file["sliding_window"] = nullptr;
  const ModelConfig full = parsed_config(file);
  EXPECT_EQ(full.layers[2].window, 0);
  EXPECT_TRUE(full.layers[3].rope);
}

// Exports of transformers before 4.52 have no text_config.
TEST(Architecture, Qwen2VlMayHaveItsTextBesideTheVision) {
  Json file = file_of("Qwen2VLForConditionalGeneration");
  file["rope_scaling"] = {{"type", "mrope"}, {"mrope_section", {16, 24, 24}}};
  EXPECT_EQ(parsed_config(file).hidden_size, 1024);
  const Json inside = {{"architectures", {"Qwen2VLForConditionalGeneration"}},
                       {"text_config", file}};
  EXPECT_EQ(parsed_config(inside).hidden_size, 1024);
}

// As the small models: layers without a window have larger heads, the last layers read the keys and
// values of the last layer of their kind before them.
TEST(Architecture, Gemma4HasHeadsByWindowAndSharesKeys) {
  Json file = file_of("Gemma4ForCausalLM");
  file["num_kv_shared_layers"] = 4;
  file["use_double_wide_mlp"] = true;
  const ModelConfig config = parsed_config(file);
  EXPECT_EQ(config.attention_scale, 1);
  EXPECT_EQ(config.layer_input_size, 256);
  EXPECT_EQ(config.layers[0].window, 512);
  EXPECT_EQ(config.layers[0].head_dim, 0);
  EXPECT_EQ(config.layers[5].window, 0);
  EXPECT_EQ(config.layers[5].head_dim, 512);
  EXPECT_EQ(config.rope.full.rotary_dim, 512);
  EXPECT_EQ(config.rope.full.turning_pairs, 64);
  EXPECT_EQ(config.rope.windowed->rotary_dim, 256);
  EXPECT_EQ(config.layers[7].kv_of, -1);
  EXPECT_EQ(config.layers[8].kv_of, 7);
  EXPECT_EQ(config.layers[8].intermediate_size, 256);
  EXPECT_EQ(config.layers[11].kv_of, 5);

  file["attention_k_eq_v"] = true;
  file["num_global_key_value_heads"] = 2;
  file["hidden_size_per_layer_input"] = 0;
  const ModelConfig large = parsed_config(file);
  EXPECT_EQ(large.layers[5].num_kv_heads, 2);
  EXPECT_EQ(large.layer_input_size, 0);

  file["enable_moe_block"] = true;
  file["num_experts"] = 8;
  file["top_k_experts"] = 2;
  file["moe_intermediate_size"] = 32;
  const ModelConfig mixture = parsed_config(file);
  EXPECT_TRUE(mixture.layers[0].experts);
  EXPECT_EQ(mixture.experts.top_k, 2);
}

// The fields that google/gemma-3-4b-it has, and no more.
TEST(Architecture, Gemma3WithVisionHasItsTextInside) {
  const ModelConfig config =
      parsed_config({{"architectures", {"Gemma3ForConditionalGeneration"}},
                     {"eos_token_id", {1, 106}},
                     {"torch_dtype", "bfloat16"},
                     {"text_config",
                      {{"hidden_size", 2560},
                       {"intermediate_size", 10240},
                       {"model_type", "gemma3_text"},
                       {"num_hidden_layers", 34},
                       {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
                       {"sliding_window", 1024}}},
                     {"vision_config", {{"hidden_size", 1152}}}});
  EXPECT_EQ(config.vocab_size, 262208);
  EXPECT_EQ(config.num_heads, 8);
  EXPECT_EQ(config.num_kv_heads, 4);
  EXPECT_EQ(config.dtype, DType::kBF16);
  EXPECT_EQ(config.eos_token_ids, (std::vector<int32_t>{1, 106}));
  EXPECT_EQ(config.max_context, 131072);
  EXPECT_EQ(config.rope.full.theta, 1e6);
  EXPECT_EQ(config.rope.full.factor, 8);
  ASSERT_TRUE(config.rope.windowed.has_value());
  EXPECT_EQ(config.rope.windowed->theta, 1e4);
  EXPECT_EQ(config.rope.windowed->type, RopeType::kDefault);
  EXPECT_EQ(config.layers[4].window, 1024);
  EXPECT_EQ(config.layers[5].window, 0);
}

}  // namespace
}  // namespace foretoken
