#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "conformance/harness.h"
#include "model/golden.h"
#include "support/scratch_folder.h"

// Draft heads that read hidden states of layers with sparse attention: of random weights, as the
// models are here, so that hardly a draft is accepted. The texts are those without drafts.

namespace foretoken {
namespace {

class SparseHeads : public testing::TestWithParam<test::GoldenCase> {
 protected:
  nlohmann::json target() const {
    std::ifstream file(GetParam().folder + "/config.json");
    const nlohmann::json config = nlohmann::json::parse(file);
    return config.value("text_config", config);
  }
  // What a head of Llama's layers has.
  static nlohmann::json layers_of(const nlohmann::json& target, int num_layers) {
    return {{"num_hidden_layers", num_layers},
            {"hidden_size", target.at("hidden_size")},
            {"vocab_size", target.at("vocab_size")},
            {"intermediate_size", 48},
            {"num_attention_heads", 4},
            {"num_key_value_heads", 2},
            {"head_dim", 16},
            {"max_position_embeddings", 512},
            {"rope_theta", 10000.0},
            {"rms_norm_eps", 1e-5},
            {"hidden_act", "silu"},
            {"tie_word_embeddings", false}};
  }
  nlohmann::json eagle3() const {
    const nlohmann::json own = target();
    nlohmann::json layer = layers_of(own, 1);
    layer["model_type"] = "llama";
    return {{"architectures", {"Eagle3Speculator"}}, {"speculators_model_type", "eagle3"},
            {"speculators_version", "0.3.0"},        {"draft_vocab_size", own.at("vocab_size")},
            {"norm_before_residual", true},          {"eagle_aux_hidden_state_layer_ids", {0, 1}},
            {"tie_word_embeddings", false},          {"torch_dtype", "float32"},
            {"transformer_layer_config", layer}};
  }
  nlohmann::json dflash() const {
    const nlohmann::json own = target();
    nlohmann::json config = layers_of(own, 2);
    config["architectures"] = {"DFlashDraftModel"};
    config["model_type"] = "qwen3";
    config["num_target_layers"] = own.at("num_hidden_layers");
    config["block_size"] = 4;
    config["torch_dtype"] = "float32";
    config["dflash_config"] = {{"mask_token_id", own.at("vocab_size").get<int>() - 1},
                               {"target_layer_ids", nlohmann::json::array({0})}};
    return config;
  }
  static RunResult run(const Variant& variant, const std::string& head) {
    Variant own = variant;
    own.draft_model = head;
    EngineConfig config = config_of(own, GetParam().folder);
    config.max_model_len = GetParam().max_model_len;
    config.hf_overrides = GetParam().hf_overrides;
    config.load_format = "dummy";
    config.dtype = "float32";
    config.skip_tokenizer_init = true;
    std::vector<Request> asked;
    for (const nlohmann::json& entry : *GetParam().prompts) {
      Request& request = asked.emplace_back();
      request.prompt_token_ids = entry.at("ids").get<std::vector<int32_t>>();
      request.sampling.max_tokens = 64;
      request.sampling.temperature = 0.7f;
      request.sampling.seed = 500;
      request.sampling.ignore_eos = true;
    }
    std::unique_ptr<Engine> engine;
    const Status made = make_engine(config, &engine);
    EXPECT_TRUE(made.ok()) << made.message();
    if (!made.ok()) return {};
    RunResult result;
    for (int round = 0; round < (variant.warm ? 2 : 1); ++round) {
      result = run_requests(*engine, variant, asked);
    }
    expect_all_free(*engine);
    return result;
  }
};

TEST_P(SparseHeads, LeaveTextsAsTheyAre) {
  const RunResult base = run({.name = "alone"}, "");
  ASSERT_FALSE(base.ids.empty());
  for (const auto& [method, config] :
       {std::pair("eagle3", eagle3()), std::pair("dflash", dflash())}) {
    const test::ScratchFolder folder;
    std::ofstream(folder.file("config.json")) << config.dump();
    const Variant plain{.name = method,
                        .num_draft_tokens = 3,
                        .drafter = method,
                        .steps_in_flight = 2,
                        .batch = 4,
                        .max_batched_tokens = 23};
    Variant warm = plain;
    warm.prefix_caching = warm.warm = true;
    for (const Variant& variant : {plain, warm}) {
      const RunResult drafted = run(variant, folder.path());
      EXPECT_EQ(count_differences(base, drafted, variant.describe()), 0);
      EXPECT_GT(drafted.stats.num_draft_tokens, drafted.stats.num_accepted_tokens);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SparseHeads,
                         testing::ValuesIn(test::golden_cases({"deepseek_v32", "glm_moe_dsa",
                                                               "minimax_m3", "deepseek_v4", "hy_v4",
                                                               "glm5_next"})),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace foretoken
