#include "model/config/rope_config.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foretoken {
namespace {

using Json = nlohmann::json;

Result<RopeConfigs> read_ropes(const Json& json, int32_t positions = 4096) {
  return read_rope_configs(ConfigFields(json, "config.json"), {64, 64}, positions);
}

RopeConfig read_scaling(const Json& scaling) {
  return read_ropes({{"rope_scaling", scaling}}).value().full;
}

std::string complaint(const Json& json) {
  const auto rope = read_ropes(json);
  return rope.ok() ? "" : rope.status().message();
}

TEST(RopeConfig, MropeTurnsTextAsWithout) {
  const RopeConfig rope = read_scaling({{"type", "mrope"}, {"mrope_section", {16, 24, 24}}});
  EXPECT_EQ(rope.type, RopeType::kDefault);
  EXPECT_EQ(rope.rotary_dim, 64);
}

TEST(RopeConfig, FixedAlphaStretchesTheta) {
  const RopeConfigs ropes =
      read_ropes({{"rope_scaling", {{"type", "dynamic"}, {"alpha", 1000}, {"factor", 1}}}}).value();
  EXPECT_EQ(ropes.full.type, RopeType::kDefault);
  EXPECT_NEAR(ropes.full.theta, 1e4 * std::pow(1000.0, 64.0 / 62), 1e-3);
  EXPECT_EQ(ropes.max_context, 4096);
  EXPECT_NE(complaint({{"rope_scaling", {{"type", "dynamic"}, {"alpha", -1}}}}).find("'alpha'"),
            std::string::npos);
}

// Gemma 4: layers without a window have larger heads, of which a part turns.
TEST(RopeConfig, ProportionalByLayerTypeWithHeadsOfTheirOwn) {
  const Json json = {
      {"rope_parameters",
       {{"full_attention",
         {{"rope_type", "proportional"}, {"partial_rotary_factor", 0.25}, {"rope_theta", 1e6}}},
        {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}}}};
  const RopeConfigs ropes =
      read_rope_configs(ConfigFields(json, "config.json"), {128, 64}, 4096).value();
  EXPECT_EQ(ropes.full.type, RopeType::kProportional);
  EXPECT_EQ(ropes.full.rotary_dim, 128);
  EXPECT_EQ(ropes.full.turning_pairs, 16);
  ASSERT_TRUE(ropes.windowed.has_value());
  EXPECT_EQ(ropes.windowed->rotary_dim, 64);
}

TEST(RopeConfig, DefaultsAndBothForms) {
  const RopeConfig plain = read_ropes(Json::object()).value().full;
  EXPECT_EQ(plain.type, RopeType::kDefault);
  EXPECT_EQ(plain.theta, 10000);
  EXPECT_EQ(plain.rotary_dim, 64);
  const Json newer = {
      {"rope_parameters", {{"rope_type", "linear"}, {"factor", 2}, {"rope_theta", 5}}}};
  EXPECT_EQ(read_ropes(newer).value().full.theta, 5);
  EXPECT_EQ(read_ropes(newer).value().full.type, RopeType::kLinear);
  EXPECT_EQ(read_ropes({{"partial_rotary_factor", 0.75}}).value().full.rotary_dim, 48);
  EXPECT_EQ(read_scaling({{"type", "su"},
                          {"short_factor", std::vector<double>(32, 1)},
                          {"long_factor", std::vector<double>(32, 2)}})
                .type,
            RopeType::kLongrope);
}

TEST(RopeConfig, ContextGrowsByTheFactor) {
  EXPECT_EQ(read_ropes({{"rope_theta", 1}}).value().max_context, 4096);
  for (const char* type : {"linear", "dynamic"}) {
    const Json json = {{"rope_scaling", {{"rope_type", type}, {"factor", 4}}}};
    EXPECT_EQ(read_ropes(json).value().max_context, 16384);
  }
  const Json yarn = {
      {"rope_type", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 1024}};
  EXPECT_EQ(read_ropes({{"rope_scaling", yarn}}).value().max_context, 4096);
  const Json llama3 = {{"rope_type", "llama3"},
                       {"factor", 8},
                       {"low_freq_factor", 1},
                       {"high_freq_factor", 4},
                       {"original_max_position_embeddings", 1024}};
  EXPECT_EQ(read_ropes({{"rope_scaling", llama3}}).value().max_context, 4096);
}

TEST(RopeConfig, LayersWithAWindowMayHaveTheirOwn) {
  const Json older = {{"rope_theta", 1e6},
                      {"rope_local_base_freq", 1e4},
                      {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8}}}};
  const Json newer = {
      {"rope_theta", 7},
      {"rope_local_base_freq", 8},
      {"rope_parameters",
       {{"full_attention", {{"rope_type", "linear"}, {"factor", 8}, {"rope_theta", 1e6}}},
        {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}}}};
  for (const Json& json : {older, newer}) {
    const RopeConfigs ropes = read_ropes(json).value();
    EXPECT_EQ(ropes.full.type, RopeType::kLinear);
    EXPECT_EQ(ropes.full.theta, 1e6);
    ASSERT_TRUE(ropes.windowed.has_value());
    EXPECT_EQ(ropes.windowed->type, RopeType::kDefault);
    EXPECT_EQ(ropes.windowed->theta, 1e4);
    EXPECT_EQ(ropes.max_context, 4096);
  }
}

TEST(RopeConfig, AttentionFactors) {
  Json yarn = {{"rope_type", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 1024}};
  EXPECT_DOUBLE_EQ(read_scaling(yarn).attention_factor, 0.1 * std::log(4) + 1);
  yarn["mscale"] = 0.5;
  yarn["mscale_all_dim"] = 2;
  EXPECT_DOUBLE_EQ(read_scaling(yarn).attention_factor,
                   (0.05 * std::log(4) + 1) / (0.2 * std::log(4) + 1));
  yarn["attention_factor"] = 0.75;
  EXPECT_EQ(read_scaling(yarn).attention_factor, 0.75);
  const Json longrope = {{"rope_type", "longrope"},
                         {"original_max_position_embeddings", 1024},
                         {"short_factor", std::vector<double>(32, 1)},
                         {"long_factor", std::vector<double>(32, 2)}};
  EXPECT_DOUBLE_EQ(read_scaling(longrope).attention_factor,
                   std::sqrt(1 + std::log(4) / std::log(1024)));
}

TEST(RopeConfig, PhiHasTheOriginalContextOutside) {
  const Json json = {{"original_max_position_embeddings", 512},
                     {"rope_scaling",
                      {{"type", "longrope"},
                       {"short_factor", std::vector<double>(32, 1)},
                       {"long_factor", std::vector<double>(32, 2)}}}};
  EXPECT_EQ(read_ropes(json).value().full.original_context, 512);
  EXPECT_EQ(read_ropes(json).value().full.factor, 8);
  EXPECT_EQ(read_ropes(json).value().max_context, 4096);
}

struct BadRope {
  Json scaling;
  const char* said;
};

TEST(RopeConfig, BadFieldsAreNamed) {
  const std::vector<double> right(32, 1), wrong(31, 1);
  const BadRope cases[] = {
      {{{"rope_type", "linear"}}, "'factor' is missing"},
      {{{"rope_type", "linear"}, {"factor", -1}}, "'factor' is -1"},
      {{{"rope_type", "dynamic"}, {"factor", "x"}}, "'factor' is \"x\""},
      {{{"rope_type", "dynamic"}, {"factor", 0.5}}, "'factor' is 0.5"},
      {{{"rope_type", "yarn"}}, "'factor' is missing"},
      {{{"rope_type", "yarn"}, {"factor", 2}, {"beta_fast", 1}, {"beta_slow", 9}}, "beta_fast"},
      {{{"rope_type", "llama3"}, {"factor", 8}}, "'low_freq_factor' is missing"},
      {{{"rope_type", "llama3"}, {"factor", 8}, {"low_freq_factor", 4}, {"high_freq_factor", 1}},
       "not smaller than low_freq_factor"},
      {{{"rope_type", "longrope"}, {"short_factor", right}}, "'long_factor' is missing"},
      {{{"rope_type", "longrope"}, {"short_factor", wrong}, {"long_factor", right}},
       "'short_factor' has 31 entries"},
      {{{"rope_type", "longrope"}, {"short_factor", {1, -1}}, {"long_factor", right}},
       "a list of positive numbers"},
      {{{"rope_type", "longrope"}, {"short_factor", 3}, {"long_factor", right}},
       "'short_factor' is 3"},
      {{{"rope_type", "rotary3"}}, "supported: default, linear, dynamic, llama3, yarn, longrope"},
      {{{"rope_type", 3}}, "rope type 3"},
      {{{"rope_theta", -1}}, "'rope_theta' is -1"},
      {{{"partial_rotary_factor", 2}}, "partial_rotary_factor 2"},
      {{{"full_attention", 3}}, "'full_attention' is 3"},
  };
  for (const BadRope& bad : cases) {
    const std::string said = complaint({{"rope_scaling", bad.scaling}});
    EXPECT_NE(said.find(bad.said), std::string::npos) << bad.scaling << ": " << said;
    EXPECT_EQ(said.rfind("config.json", 0), 0u);
  }
  EXPECT_NE(complaint({{"rope_parameters", 4}}).find("'rope_parameters' is 4"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
