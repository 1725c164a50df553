#include "model/config/recurrent_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace foretoken {
namespace {

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

}  // namespace
}  // namespace foretoken
