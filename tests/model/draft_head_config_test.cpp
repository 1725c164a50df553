#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/draft_head.h"
#include "model/draft_head_config.h"
#include "model/files/containers/json_file.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;
using test::ScratchFolder;

ModelConfig head_target_config() {
  ModelConfig target;
  target.architecture = "LlamaForCausalLM";
  target.vocab_size = 128256;
  target.hidden_size = 4096;
  target.num_layers = 32;
  target.dtype = DType::kBF16;
  return target;
}

// EAGLE-3 as SafeAILab and SpecForge publish it.
Json eagle3_json() {
  return {{"architectures", {"LlamaForCausalLMEagle3"}},
          {"bos_token_id", 128000},
          {"eos_token_id", 128001},
          {"hidden_act", "silu"},
          {"hidden_size", 4096},
          {"intermediate_size", 14336},
          {"max_position_embeddings", 2048},
          {"model_type", "llama"},
          {"num_attention_heads", 32},
          {"num_key_value_heads", 8},
          {"num_hidden_layers", 1},
          {"rms_norm_eps", 1e-05},
          {"rope_scaling",
           {{"factor", 8.0},
            {"high_freq_factor", 4.0},
            {"low_freq_factor", 1.0},
            {"original_max_position_embeddings", 4096},
            {"rope_type", "llama3"}}},
          {"rope_theta", 500000.0},
          {"torch_dtype", "float16"},
          {"vocab_size", 128256},
          {"draft_vocab_size", 32000}};
}

Json eagle_json() {
  Json json = eagle3_json();
  json.erase("draft_vocab_size");
  json["architectures"] = {"LlamaForCausalLM"};
  return json;
}

Json mtp_json() {
  Json json = eagle_json();
  json["num_hidden_layers"] = 32;
  json["num_nextn_predict_layers"] = 2;
  return json;
}

Json speculators_json() {
  Json layer = eagle3_json();
  layer.erase("draft_vocab_size");
  layer["hidden_size"] = 2048;
  layer["head_dim"] = 64;
  return {{"architectures", {"Eagle3Speculator"}},
          {"speculators_model_type", "eagle3"},
          {"draft_vocab_size", 64000},
          {"norm_before_residual", true},
          {"target_hidden_size", 4096},
          {"eagle_aux_hidden_state_layer_ids", {1, 9, 30, 31}},
          {"transformer_layer_config", layer}};
}

class DraftHeadConfigTest : public testing::Test {
 protected:
  Result<DraftHeadConfig> read(HeadKind kind, const Json& json) {
    folder_.write("config.json", json.dump());
    return read_draft_head_config(folder_.path(), kind, target_, {});
  }
  // The message says each of these.
  void expect_error(HeadKind kind, const Json& json, const std::vector<std::string>& says) {
    const auto config = read(kind, json);
    ASSERT_FALSE(config.ok()) << says[0];
    EXPECT_EQ(config.status().message().find('\n'), std::string::npos);
    for (const std::string& part : says) {
      EXPECT_NE(config.status().message().find(part), std::string::npos)
          << part << " in: " << config.status().message();
    }
  }

  ScratchFolder folder_;
  ModelConfig target_ = head_target_config();
};

TEST_F(DraftHeadConfigTest, Eagle3) {
  const auto config = read(HeadKind::kEagle3, eagle3_json());
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config.value().tap_layers, (std::vector<int32_t>{2, 16, 29}));
  EXPECT_EQ(config.value().draft_vocab_size, 32000);
  EXPECT_EQ(config.value().num_modules, 1);
  EXPECT_FALSE(config.value().norm_before_residual);
  EXPECT_EQ(config.value().layer.dtype, DType::kBF16);
  EXPECT_EQ(config.value().layer.rope.full.theta, 500000);
  EXPECT_EQ(config.value().layer.rope.full.type, RopeType::kLlama3);
  Json named = eagle3_json();
  named["eagle_config"] = {{"eagle_aux_hidden_state_layer_ids", {1, 17, 31}}};
  EXPECT_EQ(read(HeadKind::kEagle3, named).value().tap_layers, (std::vector<int32_t>{1, 17, 31}));
  Json whole = eagle3_json();
  whole.erase("draft_vocab_size");
  EXPECT_EQ(read(HeadKind::kEagle3, whole).value().draft_vocab_size, 128256);
}

TEST_F(DraftHeadConfigTest, LayersKeepTheirWindows) {
  Json json = eagle3_json();
  json["sliding_window"] = 64;
  json["layer_types"] = {"sliding_attention", "full_attention"};
  json["num_hidden_layers"] = 2;
  const auto config = read(HeadKind::kEagle3, json);
  ASSERT_TRUE(config.ok()) << config.status().message();
  ASSERT_EQ(config.value().layer.layers.size(), 2u);
  EXPECT_EQ(config.value().layer.layers[0].window, 64);
  EXPECT_EQ(config.value().layer.layers[1].window, 0);
}

TEST_F(DraftHeadConfigTest, SpeculatorsKeepsTheSizesInAnObject) {
  const auto config = read(HeadKind::kEagle3, speculators_json());
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config.value().layer.hidden_size, 2048);
  EXPECT_EQ(config.value().draft_vocab_size, 64000);
  EXPECT_TRUE(config.value().norm_before_residual);
  EXPECT_EQ(config.value().tap_layers, (std::vector<int32_t>{1, 9, 30, 31}));
  EXPECT_EQ(config.value().proposed_drafts, 0);
}

TEST_F(DraftHeadConfigTest, SpeculatorsProposesANumberOfDrafts) {
  Json json = speculators_json();
  json["speculators_config"]["proposal_methods"] = {
      {{"proposal_type", "greedy"}, {"speculative_tokens", 5}}};
  EXPECT_EQ(read(HeadKind::kEagle3, json).value().proposed_drafts, 5);
  for (const Json& odd : {Json(-1), Json("five"), Json(1.5), Json()}) {
    json["speculators_config"]["proposal_methods"][0]["speculative_tokens"] = odd;
    EXPECT_EQ(read(HeadKind::kEagle3, json).value().proposed_drafts, 0) << odd;
  }
}

TEST_F(DraftHeadConfigTest, HeadsOfNoKindAreNamed) {
  Json other = speculators_json();
  other["speculators_model_type"] = "fastmtp";
  expect_error(HeadKind::kEagle3, other, {"fastmtp", "not supported", "use a head"});
  Json assistant = mtp_json();
  assistant["model_type"] = "gemma4_assistant";
  expect_error(HeadKind::kMtp, assistant, {"gemma4_assistant", "to gemma4_assistant"});
}

// A published config.json says nothing of them; where there are no weights, there are as many as in
// published files.
TEST_F(DraftHeadConfigTest, ModulesAreCountedInFiles) {
  const std::string folder = std::string(foretoken::kSourceFolder) + "/tests/golden/heads/mimo_v2";
  target_.architecture = "MiMoV2FlashForCausalLM";
  target_.vocab_size = 128;
  target_.hidden_size = 64;
  target_.num_layers = 3;
  const auto counted = read_draft_head_config(folder, HeadKind::kMtp, target_, {});
  ASSERT_TRUE(counted.ok()) << counted.status().message();
  EXPECT_EQ(counted.value().num_modules, 2);
  Json json = read_json_file(folder + "/config.json").value();
  const auto config = read(HeadKind::kMtp, json);
  ASSERT_TRUE(config.ok()) << config.status().message();
  ASSERT_EQ(config.value().num_modules, 3);
  for (const LayerConfig& layer : config.value().layer.layers) {
    EXPECT_EQ(layer.window, 7);
    EXPECT_EQ(layer.num_kv_heads, 2);
    EXPECT_FALSE(layer.experts);
  }
  json["hybrid_layer_pattern"] = {0, 0, 0};
  expect_error(HeadKind::kMtp, json, {"sliding window", "another drafter"});
}

TEST_F(DraftHeadConfigTest, EagleAndMtpTapTheFinalNorm) {
  const auto eagle = read(HeadKind::kEagle, eagle_json());
  ASSERT_TRUE(eagle.ok()) << eagle.status().message();
  EXPECT_EQ(eagle.value().tap_layers, std::vector<int32_t>{TapSink::kFinalNorm});
  EXPECT_EQ(eagle.value().draft_vocab_size, 0);
  const auto mtp = read(HeadKind::kMtp, mtp_json());
  ASSERT_TRUE(mtp.ok()) << mtp.status().message();
  EXPECT_EQ(mtp.value().num_modules, 2);
  EXPECT_EQ(mtp.value().first_layer, 32);
  EXPECT_EQ(mtp.value().layer.num_layers, 2);
  EXPECT_EQ(mtp.value().tap_layers, std::vector<int32_t>{TapSink::kFinalNorm});
  // The layers are those of the target where the head has a name of its own.
  target_.architecture = "Qwen3ForCausalLM";
  Json named = mtp_json();
  named["architectures"] = {"Qwen3MTP"};
  EXPECT_EQ(read(HeadKind::kMtp, named).value().layer.architecture, "Qwen3ForCausalLM");
}

// Whose layers are mixtures from the third on.
Json mixture_json() {
  return {{"architectures", {"DeepseekV3ForCausalLM"}},
          {"vocab_size", 1024},
          {"hidden_size", 512},
          {"intermediate_size", 512},
          {"moe_intermediate_size", 128},
          {"num_attention_heads", 8},
          {"num_hidden_layers", 5},
          {"num_nextn_predict_layers", 2},
          {"q_lora_rank", 64},
          {"kv_lora_rank", 128},
          {"n_routed_experts", 16},
          {"n_group", 4},
          {"topk_group", 2},
          {"num_experts_per_tok", 4},
          {"rope_theta", 10000.0},
          {"rms_norm_eps", 1e-6}};
}

// Modules stand behind the target's layers, and are what the pattern makes of their numbers.
TEST_F(DraftHeadConfigTest, ModulesAreMixturesWhereThePatternSaysSo) {
  target_.architecture = "DeepseekV3ForCausalLM";
  target_.vocab_size = 1024;
  target_.hidden_size = 512;
  target_.num_layers = 5;
  const auto mixtures = [&](const Json& json) {
    const auto config = read(HeadKind::kMtp, json);
    EXPECT_TRUE(config.ok()) << config.status().message();
    std::vector<bool> all;
    if (!config.ok()) return all;
    EXPECT_EQ(config.value().first_layer, 5);
    EXPECT_EQ(config.value().layer.num_layers, 2);
    EXPECT_EQ(config.value().layer.head_dim, 128 + 64) << "a latent and what turns";
    for (const LayerConfig& layer : config.value().layer.layers) all.push_back(layer.experts);
    return all;
  };
  Json json = mixture_json();
  EXPECT_EQ(mixtures(json), (std::vector<bool>{true, true}));
  json["moe_layer_freq"] = 2;
  EXPECT_EQ(mixtures(json), (std::vector<bool>{false, true})) << "layers 5 and 6";
  json["moe_layer_freq"] = {0, 0, 0, 1, 1};
  EXPECT_EQ(mixtures(json), (std::vector<bool>{true, true})) << "a list goes on as it ends";
  json["moe_layer_freq"] = {0, 0, 0, 1, 0};
  EXPECT_EQ(mixtures(json), (std::vector<bool>{false, false}));
  json.erase("n_routed_experts");
  EXPECT_EQ(mixtures(json), (std::vector<bool>{false, false})) << "dense";
}

TEST_F(DraftHeadConfigTest, OverridesReachTheLayer) {
  folder_.write("config.json", speculators_json().dump());
  const auto config = read_draft_head_config(folder_.path(), HeadKind::kEagle3, target_,
                                             {"float32", R"({"rope_theta": 7.0})"});
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config.value().layer.rope.full.theta, 7);
  EXPECT_EQ(config.value().layer.dtype, DType::kBF16);
}

TEST_F(DraftHeadConfigTest, AFolderWithoutConfig) {
  const auto config =
      read_draft_head_config(folder_.file("nothing"), HeadKind::kEagle, target_, {});
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.status().code(), StatusCode::kNotFound);
  EXPECT_NE(config.status().message().find("nothing"), std::string::npos);
  EXPECT_NE(config.status().message().find("set 'model'"), std::string::npos);
}

TEST_F(DraftHeadConfigTest, SizesOfAnotherTarget) {
  Json json = eagle_json();
  json["hidden_size"] = 2048;
  expect_error(HeadKind::kEagle, json, {"hidden_size 2048", "4096", "trained for this target"});
  json = mtp_json();
  json["hidden_size"] = 2048;
  expect_error(HeadKind::kMtp, json, {"hidden_size 2048", "4096"});
  json = eagle3_json();
  json["vocab_size"] = 151936;
  expect_error(HeadKind::kEagle3, json, {"vocab_size 151936", "128256"});
  json = speculators_json();
  json["target_hidden_size"] = 5120;
  expect_error(HeadKind::kEagle3, json, {"target_hidden_size 5120", "4096"});
  json = mtp_json();
  json["num_hidden_layers"] = 61;
  expect_error(HeadKind::kMtp, json, {"num_hidden_layers 61", "32"});
}

TEST_F(DraftHeadConfigTest, TapsBeyondTheTarget) {
  Json json = eagle3_json();
  const Json wrong[] = {{2, 16, 33}, {-1, 3, 4}, {1.5}};
  for (const Json& ids : wrong) {
    json["eagle_config"] = {{"eagle_aux_hidden_state_layer_ids", ids}};
    expect_error(HeadKind::kEagle3, json, {"eagle_aux_hidden_state_layer_ids", "32 layers"});
  }
  json["eagle_config"] = {{"eagle_aux_hidden_state_layer_ids", Json::array()}};
  expect_error(HeadKind::kEagle3, json, {"must be a list of layer numbers"});
  json.erase("eagle_config");
  target_.num_layers = 2;
  expect_error(HeadKind::kEagle3, json, {"without 'eagle_aux_hidden_state_layer_ids'", "layer 2"});
}

TEST_F(DraftHeadConfigTest, MissingModules) {
  Json json = mtp_json();
  json.erase("num_nextn_predict_layers");
  expect_error(HeadKind::kMtp, json, {"num_nextn_predict_layers", "no MTP module"});
  json["num_nextn_predict_layers"] = 0;
  expect_error(HeadKind::kMtp, json, {"num_nextn_predict_layers", "change 'method'"});
}

// Beside streams Hy4's module has none, and one is what its files count as one or as two.
TEST_F(DraftHeadConfigTest, ModulesWithoutStreamsPairWithWhatLeavesThem) {
  Json json = mixture_json();
  json.update(
      {{"architectures", {"HYV4ForCausalLM"}}, {"n_group", 1}, {"topk_group", 1}, {"hc_mult", 4}});
  target_.architecture = "HYV4ForCausalLM";
  target_.vocab_size = 1024;
  target_.hidden_size = 512;
  target_.num_layers = 5;
  for (const int count : {1, 2, 3}) {
    json["num_nextn_predict_layers"] = count;
    const auto head = read(HeadKind::kMtp, json);
    ASSERT_TRUE(head.ok()) << head.status().message();
    EXPECT_FALSE(head.value().layer.hyper.exist());
    EXPECT_EQ(head.value().tap_layers, std::vector<int32_t>{TapSink::kFinalNorm});
    EXPECT_EQ(head.value().num_modules, std::max(count - 1, 1));
    EXPECT_TRUE(head.value().layer.layers[0].experts);
  }
}

TEST_F(DraftHeadConfigTest, Eagle31) {
  Json json = eagle3_json();
  json["fc_norm"] = json["norm_output"] = true;
  const auto each = read(HeadKind::kEagle3, json);
  ASSERT_TRUE(each.ok()) << each.status().message();
  EXPECT_TRUE(each.value().fc_norm && each.value().norm_output);
  EXPECT_FALSE(each.value().norm_before_fc);
  json["norm_before_fc"] = true;
  expect_error(HeadKind::kEagle3, json, {"'fc_norm' and 'norm_before_fc'", "remove the one"});
  json["fc_norm"] = false;
  EXPECT_TRUE(read(HeadKind::kEagle3, json).value().norm_before_fc);
}

// Some heads repeat the target's number of layers and have one.
TEST_F(DraftHeadConfigTest, TheTargetsNumberOfLayers) {
  Json json = eagle3_json();
  json["num_hidden_layers"] = target_.num_layers;
  const auto head = read(HeadKind::kEagle3, json);
  ASSERT_TRUE(head.ok()) << head.status().message();
  EXPECT_EQ(head.value().layer.num_layers, 1);
}

TEST_F(DraftHeadConfigTest, EagleHeadsOfSeveralLayers) {
  for (const HeadKind kind : {HeadKind::kEagle, HeadKind::kEagle3, HeadKind::kPeagle}) {
    Json json = kind == HeadKind::kEagle ? eagle_json() : eagle3_json();
    json["num_hidden_layers"] = 4;
    json["mask_token_id"] = 7;
    const auto head = read(kind, json);
    ASSERT_TRUE(head.ok()) << head.status().message();
    EXPECT_EQ(head.value().num_modules, 1);
    EXPECT_EQ(head.value().num_layers, 4);
    EXPECT_EQ(head.value().layer.layers.size(), 4u);
    EXPECT_EQ(head.value().mask_id, kind == HeadKind::kPeagle ? 7 : 0);
  }
  // Here the number is what it says.
  Json json = eagle3_json();
  json["num_hidden_layers"] = target_.num_layers;
  json["pard_token"] = 9;
  EXPECT_EQ(read(HeadKind::kPeagle, json).value().num_layers, target_.num_layers);
}

TEST_F(DraftHeadConfigTest, VariantsThatWouldDraftBadly) {
  Json json = eagle3_json();
  json["parallel_drafting"] = true;
  expect_error(HeadKind::kEagle3, json, {"'parallel_drafting'", "not supported", "p_eagle"});
  json["parallel_drafting"] = false;
  json["kv_lora_rank"] = 512;
  expect_error(HeadKind::kEagle3, json, {"'kv_lora_rank'", "not supported"});
  json.erase("kv_lora_rank");
  EXPECT_TRUE(read(HeadKind::kEagle3, json).ok());
  expect_error(HeadKind::kEagle, speculators_json(), {"\"eagle3\"", "\"eagle\"", "'method'"});
  json = eagle3_json();
  json["draft_vocab_size"] = 200000;
  expect_error(HeadKind::kEagle3, json, {"draft_vocab_size", "at most vocab_size 128256"});
  json = eagle3_json();
  json["rope_scaling"] = {{"type", "spiral"}};
  expect_error(HeadKind::kEagle3, json, {"spiral"});
}

// As NVIDIA's heads for gpt-oss say it.
TEST_F(DraftHeadConfigTest, TheFinalStateInsteadOfTaps) {
  Json json = eagle3_json();
  json["eagle_config"] = {{"use_aux_hidden_state", false}};
  const auto head = read(HeadKind::kEagle3, json);
  ASSERT_TRUE(head.ok()) << head.status().message();
  EXPECT_TRUE(head.value().reads_final_state());
  EXPECT_FALSE(read(HeadKind::kEagle3, eagle3_json()).value().reads_final_state());
}

TEST_F(DraftHeadConfigTest, WhatLeavesTheLastLayerIsRead) {
  Json json = eagle3_json();
  json["eagle_config"] = {{"eagle_aux_hidden_state_layer_ids", {2, target_.num_layers}}};
  const auto head = read(HeadKind::kEagle3, json);
  ASSERT_TRUE(head.ok()) << head.status().message();
  EXPECT_EQ(head.value().tap_layers, (std::vector<int32_t>{2, TapSink::kLastLayer}));
  json["eagle_config"] = {{"eagle_aux_hidden_state_layer_ids", {2, target_.num_layers + 1}}};
  expect_error(HeadKind::kEagle3, json, {std::to_string(target_.num_layers + 1)});
}

}  // namespace
}  // namespace foretoken
