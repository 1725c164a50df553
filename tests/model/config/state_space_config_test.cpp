#include "model/config/state_space_config.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace foretoken {
namespace {

using Json = nlohmann::json;

Json small_file() {
  return {{"mamba_n_heads", 8},      {"mamba_d_head", 16},
          {"mamba_n_groups", 2},     {"mamba_d_state", 32},
          {"mamba_d_conv", 4},       {"mamba_conv_bias", false},
          {"mamba_proj_bias", true}, {"time_step_limit", {0.001, 0.1}}};
}

TEST(StateSpaceConfig, ReadsSizesAndBounds) {
  const Json json = small_file();
  RecurrentConfig config;
  ASSERT_TRUE(read_state_space(ConfigFields(json, "f"), {}, 128, &config).ok());
  EXPECT_EQ(config.value_heads, 8);
  EXPECT_EQ(config.value_dim, 16);
  EXPECT_EQ(config.key_heads, 2);
  EXPECT_EQ(config.key_dim, 32);
  EXPECT_EQ(config.conv_width, 4);
  EXPECT_FALSE(config.conv_bias);
  EXPECT_TRUE(config.bias);
  EXPECT_FLOAT_EQ(config.min_step, 0.001f);
  EXPECT_FLOAT_EQ(config.max_step, 0.1f);
}

TEST(StateSpaceConfig, HeadsDivideWhatTheyAreNotSaidToBe) {
  Json json = small_file();
  json["mamba_d_head"] = "auto";
  RecurrentConfig config;
  ASSERT_TRUE(read_state_space(ConfigFields(json, "f"), {}, 256, &config).ok());
  EXPECT_EQ(config.value_dim, 32);
  json.erase("mamba_d_head");
  const Status status = read_state_space(ConfigFields(json, "f"), {}, 250, &config);
  EXPECT_NE(status.message().find("mamba_n_heads"), std::string::npos) << status.message();
}

// Infinity, and what stands for it in files that have no word for it.
TEST(StateSpaceConfig, StepsMayHaveNoUpperBound) {
  for (const Json& most : {Json(std::numeric_limits<double>::infinity()), Json(1e308)}) {
    Json json = small_file();
    json["time_step_limit"] = {0.0, most};
    RecurrentConfig config;
    ASSERT_TRUE(read_state_space(ConfigFields(json, "f"), {}, 128, &config).ok());
    EXPECT_EQ(config.max_step, std::numeric_limits<float>::infinity());
  }
}

TEST(StateSpaceConfig, NamesTheFieldAtFault) {
  const std::pair<const char*, Json> wrong[] = {
      {"mamba_n_groups", 3},      {"mamba_d_conv", 9},        {"mamba_d_conv", 1},
      {"mamba_d_state", 0},       {"time_step_limit", {0.1}}, {"time_step_limit", {0.1, 0.1}},
      {"time_step_limit", "none"}};
  for (const auto& [name, value] : wrong) {
    Json json = small_file();
    json[name] = value;
    RecurrentConfig config;
    const Status status = read_state_space(ConfigFields(json, "f"), {}, 128, &config);
    EXPECT_NE(status.message().find(name), std::string::npos) << name << status.message();
  }
}

}  // namespace
}  // namespace foretoken
