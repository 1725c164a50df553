#include "model/config/peft_config.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foretoken {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson plain() {
  return {{"peft_type", "LORA"}, {"r", 8}, {"lora_alpha", 16}, {"target_modules", {"q_proj"}}};
}

PeftConfig config_with(const OrderedJson& more) {
  OrderedJson config = plain();
  if (!more.is_null()) config.update(more);
  return PeftConfig::parse(config, "adapter_config.json").value();
}

Status refusal_of(const OrderedJson& more) {
  OrderedJson config = plain();
  if (!more.is_null()) config.update(more);
  return PeftConfig::parse(config, "adapter_config.json").status();
}

TEST(PeftConfig, TargetsAreEndingsARegularExpressionOrAllLinearLayers) {
  const std::string q = "model.layers.3.self_attn.q_proj", up = "model.layers.3.mlp.up_proj";
  EXPECT_TRUE(config_with({}).targets(q).value());
  EXPECT_FALSE(config_with({}).targets(up).value());
  EXPECT_FALSE(config_with({{"target_modules", {"proj"}}}).targets(q).value()) << "whole names";
  EXPECT_TRUE(config_with({{"target_modules", {"self_attn.q_proj"}}}).targets(q).value());
  const PeftConfig pattern = config_with({{"target_modules", R"(.*\.(q|up)_proj)"}});
  EXPECT_TRUE(pattern.targets(q).value() && pattern.targets(up).value());
  EXPECT_FALSE(config_with({{"target_modules", "q_proj"}}).targets(q).value()) << "the whole name";
  EXPECT_TRUE(config_with({{"target_modules", "all-linear"}}).targets(up).value());
  EXPECT_FALSE(config_with({{"target_modules", "all-linear"}, {"exclude_modules", {"up_proj"}}})
                   .targets(up)
                   .value());
}

TEST(PeftConfig, LayersAreFoundByTheNumberInTheName) {
  const auto in_layers = [](const OrderedJson& more, const char* module) {
    return config_with(more).targets(module).value();
  };
  const OrderedJson some = {{"layers_to_transform", {1, 12}}};
  EXPECT_TRUE(in_layers(some, "model.layers.12.self_attn.q_proj"));
  EXPECT_FALSE(in_layers(some, "model.layers.2.self_attn.q_proj"));
  EXPECT_FALSE(in_layers({{"layers_to_transform", 1}}, "model.layers.12.self_attn.q_proj"));
  const OrderedJson named = {{"layers_to_transform", {1}}, {"layers_pattern", "blocks"}};
  EXPECT_TRUE(in_layers(named, "model.blocks.1.q_proj"));
  EXPECT_FALSE(in_layers(named, "model.layers.1.q_proj"));
}

TEST(PeftConfig, RanksAndScalesFollowTheirPatterns) {
  const std::string q = "model.layers.3.self_attn.q_proj";
  EXPECT_FLOAT_EQ(config_with({}).scale(q).value(), 2.0f);
  EXPECT_FLOAT_EQ(config_with({{"use_rslora", true}, {"r", 16}}).scale(q).value(), 4.0f);
  const PeftConfig ranks =
      config_with({{"rank_pattern", {{"q_proj", 4}, {"self_attn.q_proj", 2}}}});
  EXPECT_EQ(ranks.rank(q).value(), 4) << "the first that fits";
  EXPECT_EQ(ranks.rank("model.layers.3.self_attn.v_proj").value(), 8);
  EXPECT_FLOAT_EQ(ranks.scale(q).value(), 4.0f);
  const PeftConfig alphas = config_with({{"alpha_pattern", {{R"(layers\.[0-3]\..*)", 4}}}});
  EXPECT_FLOAT_EQ(alphas.scale(q).value(), 0.5f);
  EXPECT_FLOAT_EQ(alphas.scale("model.layers.4.self_attn.q_proj").value(), 2.0f);
}

TEST(PeftConfig, WhatIsNoPlainLoraIsRefusedByName) {
  const std::vector<OrderedJson> refused = {{{"peft_type", "IA3"}},
                                            {{"use_qalora", true}},
                                            {{"bias", "all"}},
                                            {{"layer_replication", {{0, 1}}}},
                                            {{"init_lora_weights", "pissa_niter_4"}}};
  for (const OrderedJson& more : refused) {
    const Status status = refusal_of(more);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << more;
    EXPECT_NE(status.message().find(more.begin().key()), std::string::npos) << status.message();
  }
  for (const OrderedJson& more :
       {OrderedJson{{"bias", "all"}}, OrderedJson{{"target_parameters", {"experts.down_proj"}}}}) {
    EXPECT_NE(refusal_of(more).message().find("merge_and_unload()"), std::string::npos) << more;
  }
  // Of these PEFT can merge neither.
  const std::string message = refusal_of({{"arrow_config", {1, 2}}}).message();
  EXPECT_EQ(message.find("merge"), std::string::npos) << message;
  EXPECT_NE(message.find("; "), std::string::npos) << message;
  EXPECT_TRUE(refusal_of({{"modules_to_save", nullptr}, {"use_dora", false}}).ok());
  EXPECT_TRUE(config_with({{"use_dora", true}}).uses_dora());
  EXPECT_TRUE(config_with({{"fan_in_fan_out", true}}).transposes());
  EXPECT_TRUE(refusal_of({{"fan_in_fan_out", true}}).ok());
  EXPECT_TRUE(refusal_of({{"modules_to_save", OrderedJson::array()}, {"bias", "none"}}).ok());
  EXPECT_TRUE(
      refusal_of({{"init_lora_weights", "gaussian"}, {"loftq_config", OrderedJson::object()}})
          .ok());
}

TEST(PeftConfig, ModulesThatWereTrainedWholeAreTold) {
  const PeftConfig config = config_with({{"modules_to_save", {"lm_head"}}});
  EXPECT_TRUE(config.saves("lm_head").value());
  EXPECT_FALSE(config.saves("model.embed_tokens").value());
  EXPECT_FALSE(config.ties_head());
  EXPECT_TRUE(config_with({{"ensure_weight_tying", true}}).ties_head());
  EXPECT_FALSE(config_with({}).saves("lm_head").value());
}

TEST(PeftConfig, TokensThatWereTrainedAreThoseOfTheirModule) {
  const std::string table = "model.embed_tokens", head = "lm_head";
  const std::vector<int32_t> ids = {3, 1};
  EXPECT_FALSE(config_with({{"trainable_token_indices", nullptr}}).trains_tokens());
  const PeftConfig list = config_with({{"trainable_token_indices", ids}});
  EXPECT_TRUE(list.trains_tokens());
  ASSERT_NE(list.trained_tokens(table), nullptr);
  EXPECT_EQ(*list.trained_tokens(table), ids);
  EXPECT_EQ(*list.trained_tokens(head), ids) << "tied";
  const PeftConfig named = config_with({{"trainable_token_indices", {{"lm_head", ids}}}});
  EXPECT_EQ(named.trained_tokens(table), nullptr);
  EXPECT_EQ(*named.trained_tokens(head), ids);
  const PeftConfig tied = config_with({{"trainable_token_indices", {{"embed_tokens", ids}}}});
  EXPECT_EQ(*tied.trained_tokens(head), ids);
  EXPECT_EQ(config_with({{"alora_invocation_tokens", ids}}).invocation(), ids);
  EXPECT_TRUE(config_with({}).invocation().empty());
}

TEST(PeftConfig, WrongTypesAndPatternsAreErrors) {
  const std::vector<OrderedJson> wrong = {{{"r", "8"}},
                                          {{"r", 0}},
                                          {{"r", 1e300}},
                                          {{"r", 2.5}},
                                          {{"lora_alpha", "x"}},
                                          {{"target_modules", 3}},
                                          {{"target_modules", {1}}},
                                          {{"rank_pattern", {{"q", "x"}}}},
                                          {{"alpha_pattern", 3}},
                                          {{"layers_to_transform", "x"}},
                                          {{"trainable_token_indices", 3}},
                                          {{"trainable_token_indices", {-1}}},
                                          {{"trainable_token_indices", {{"x", {1.5}}}}},
                                          {{"alora_invocation_tokens", "x"}},
                                          {{"alora_invocation_tokens", OrderedJson::array()}},
                                          {{"layers_to_transform", {1.5}}}};
  for (const OrderedJson& more : wrong) {
    EXPECT_EQ(refusal_of(more).code(), StatusCode::kInvalidArgument) << more;
  }
  EXPECT_FALSE(config_with({{"target_modules", "(q_proj"}}).targets("x").ok());
  EXPECT_FALSE(config_with({{"rank_pattern", {{"*", 3}}}}).rank("x").ok());
  EXPECT_FALSE(config_with({{"rank_pattern", {{"x", 2.5}}}}).rank("x").ok());
  EXPECT_FALSE(config_with({{"alpha_pattern", {{"x", std::nan("")}}}}).scale("x").ok());
  EXPECT_FALSE(config_with({{"lora_alpha", 1e300}}).scale("x").ok());
  // Matching is bounded.
  const std::string long_name(64, 'a');
  (void)config_with({{"target_modules", "(a*)*(a*)*(a*)*(a*)*b"}}).targets(long_name);
}

}  // namespace
}  // namespace foretoken
