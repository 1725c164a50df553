#include "model/config/recurrent_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/config/config.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

Status read_sizes(const nlohmann::json& changes, RecurrentConfig* out) {
  nlohmann::json json = {{"linear_num_key_heads", 2},
                         {"linear_num_value_heads", 4},
                         {"linear_key_head_dim", 16},
                         {"linear_value_head_dim", 24},
                         {"linear_conv_kernel_dim", 4}};
  json.update(changes);
  return read_linear_sizes(ConfigFields(json, "config.json"), out);
}

TEST(RecurrentConfig, SizesOfLinearAttention) {
  RecurrentConfig config;
  ASSERT_TRUE(read_sizes(nlohmann::json::object(), &config).ok());
  EXPECT_EQ(config.value_heads, 4);
  EXPECT_EQ(config.value_dim, 24);
  EXPECT_EQ(config.conv_width, 4);
  EXPECT_FALSE(config.tiled);
}

TEST(RecurrentConfig, ContradictionsAreNamed) {
  RecurrentConfig config;
  EXPECT_NE(read_sizes({{"linear_num_value_heads", 3}}, &config).message().find("3 value heads"),
            std::string::npos);
  EXPECT_EQ(read_sizes({{"linear_conv_kernel_dim", 9}}, &config).code(), StatusCode::kUnsupported);
  EXPECT_EQ(read_sizes({{"linear_key_head_dim", nullptr}}, &config).code(),
            StatusCode::kInvalidArgument);
}

TEST(RecurrentConfig, ShortConvolutionsPassSiluAlone) {
  const auto check = [](const nlohmann::json& json) {
    return check_convolution_activation(ConfigFields(json, "config.json"), "hidden_act");
  };
  for (const char* name : {"silu", "swish"}) EXPECT_TRUE(check({{"hidden_act", name}}).ok());
  EXPECT_TRUE(check(nlohmann::json::object()).ok());
  const Status refused = check({{"hidden_act", "gelu"}});
  EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
  EXPECT_NE(refused.message().find("hidden_act \"gelu\" is not supported"), std::string::npos);
}

// As the published class reads it: a bound of null is none, but where gates are said to be safe.
TEST(RecurrentConfig, Glm5NextBoundsDecaysAsItsFileSays) {
  const auto bound_of = [](const Json& more) {
    Json json = {{"architectures", {"Glm5NextForConditionalGeneration"}},
                 {"vocab_size", 64},
                 {"hidden_size", 32},
                 {"num_hidden_layers", 2},
                 {"num_attention_heads", 4},
                 {"intermediate_size", 64},
                 {"q_lora_rank", 32},
                 {"kv_lora_rank", 32},
                 {"n_routed_experts", 8},
                 {"moe_intermediate_size", 32}};
    json.update(more);
    const auto parsed = parse_model_config(json, Json::object(), {}, "f");
    EXPECT_TRUE(parsed.ok()) << parsed.status().message();
    return parsed.ok() ? parsed.value().recurrent.lower_bound : 1;
  };
  const Json null, safe = {{"safe_gate", true}}, unsafe = {{"safe_gate", false}};
  const auto apart = [](Json delta, const Json& bound) {
    delta["gate_lower_bound"] = bound;
    return Json{{"linear_attn_config", std::move(delta)}};
  };
  EXPECT_EQ(bound_of(Json::object()), -5);
  EXPECT_EQ(bound_of({{"layer_types", {"linear_attention", "deepseek_sparse_attention"}}}), -5);
  EXPECT_EQ(bound_of({{"linear_lower_bound", null}}), 0);
  EXPECT_EQ(bound_of({{"linear_lower_bound", null}, {"linear_attn_config", safe}}), -5);
  EXPECT_EQ(bound_of({{"linear_lower_bound", null}, {"linear_attn_config", unsafe}}), 0);
  EXPECT_EQ(bound_of(apart(unsafe, null)), 0);
  EXPECT_EQ(bound_of(apart(safe, null)), -5);
  EXPECT_EQ(bound_of(apart(Json::object(), -2)), -2);
}

}  // namespace
}  // namespace foretoken
