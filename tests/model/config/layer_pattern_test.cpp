#include "model/config/layer_pattern.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using Json = nlohmann::json;

Result<std::vector<LayerConfig>> read_pattern(const Json& json, WindowRule rule,
                                              int32_t layers = 4) {
  return read_layer_configs(ConfigFields(json, "config.json"), rule, layers);
}

std::vector<int32_t> windows(const Json& json, WindowRule rule) {
  std::vector<int32_t> windows;
  const auto layers = read_pattern(json, rule).value();
  for (const LayerConfig& layer : layers) windows.push_back(layer.window);
  return windows;
}

std::vector<bool> ropes(const Json& json) {
  std::vector<bool> ropes;
  const auto layers = read_pattern(json, WindowRule::kNever).value();
  for (const LayerConfig& layer : layers) ropes.push_back(layer.rope);
  return ropes;
}

using Windows = std::vector<int32_t>;
const Windows kNone(4, 0);

TEST(LayerPattern, Rules) {
  const Json window = {{"sliding_window", 9}};
  EXPECT_EQ(windows(window, WindowRule::kNever), kNone);
  EXPECT_EQ(windows(window, WindowRule::kAlways), Windows(4, 9));
  EXPECT_EQ(windows({{"sliding_window", nullptr}}, WindowRule::kAlways), kNone);
  EXPECT_EQ(windows({{"sliding_window", 9}, {"sliding_window_pattern", 3}}, WindowRule::kPattern),
            (Windows{9, 9, 0, 9}));
  Json qwen = {{"sliding_window", 9}, {"max_window_layers", 3}, {"use_sliding_window", true}};
  EXPECT_EQ(windows(qwen, WindowRule::kFromLayer), (Windows{0, 0, 0, 9}));
  qwen["max_window_layers"] = 0;
  EXPECT_EQ(windows(qwen, WindowRule::kFromLayer), Windows(4, 9));
  qwen["use_sliding_window"] = false;
  EXPECT_EQ(windows(qwen, WindowRule::kFromLayer), kNone);
  EXPECT_EQ(
      windows({{"sliding_window", 9}, {"use_sliding_window", true}, {"no_rope_layer_interval", 2}},
              WindowRule::kWithoutRope),
      (Windows{0, 9, 0, 9}));
}

TEST(LayerPattern, LayerTypesGoBeforeTheRule) {
  const Json listed = {
      {"sliding_window", 9},
      {"sliding_window_pattern", 2},
      {"layer_types", {"full_attention", "full_attention", "sliding_attention", "full_attention"}}};
  EXPECT_EQ(windows(listed, WindowRule::kPattern), (Windows{0, 0, 9, 0}));
  EXPECT_EQ(windows(listed, WindowRule::kNever), (Windows{0, 0, 9, 0}));
  // Qwen's files list types and switch them off.
  EXPECT_EQ(windows(listed, WindowRule::kFromLayer), kNone);
}

TEST(LayerPattern, LayersWithoutPositions) {
  EXPECT_EQ(ropes(Json::object()), std::vector<bool>(4, true));
  EXPECT_EQ(ropes({{"no_rope_layer_interval", 2}}), (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(ropes({{"no_rope_layers", {1, 1, 0, 1}}, {"no_rope_layer_interval", 2}}),
            (std::vector<bool>{true, true, false, true}));
}

struct BadPattern {
  Json json;
  WindowRule rule;
  const char* said;
};

TEST(LayerPattern, BadFieldsAreNamed) {
  const BadPattern cases[] = {
      {{{"sliding_window", 0}}, WindowRule::kAlways, "'sliding_window' is 0"},
      {{{"sliding_window", -1}}, WindowRule::kAlways, "'sliding_window' is -1"},
      {{{"sliding_window_pattern", 2}}, WindowRule::kPattern, "'sliding_window' is missing"},
      {{{"sliding_window", 4}, {"sliding_window_pattern", 0}},
       WindowRule::kPattern,
       "'sliding_window_pattern' is 0"},
      {{{"layer_types", {"full_attention"}}}, WindowRule::kNever, "has 1 entries for 4 layers"},
      {{{"layer_types", "full"}}, WindowRule::kNever, "one entry for each layer"},
      {{{"layer_types", {"full_attention", "full_attention", "mamba", "full_attention"}}},
       WindowRule::kNever,
       "layer type \"mamba\" is not supported; supported: full_attention, sliding_attention"},
      {{{"use_sliding_window", 1}}, WindowRule::kFromLayer, "'use_sliding_window' is 1"},
      {{{"use_sliding_window", true}, {"sliding_window", 4}},
       WindowRule::kFromLayer,
       "'max_window_layers' is missing"},
      {{{"use_sliding_window", true}, {"sliding_window", 4}, {"max_window_layers", -1}},
       WindowRule::kFromLayer,
       "'max_window_layers' is -1"},
      {{{"no_rope_layers", {1, 0}}}, WindowRule::kNever, "'no_rope_layers' has 2 entries"},
      {{{"no_rope_layers", {1, 0, 2, 1}}}, WindowRule::kNever, "'no_rope_layers' is [1,0,2,1]"},
  };
  for (const BadPattern& bad : cases) {
    const auto layers = read_pattern(bad.json, bad.rule);
    ASSERT_FALSE(layers.ok()) << bad.json;
    EXPECT_NE(layers.status().message().find(bad.said), std::string::npos)
        << bad.json << ": " << layers.status().message();
  }
}

TEST(LayerPattern, TypesByARuleStandWhereTheFileHasNone) {
  const auto type_of = [](int32_t i, int32_t num_layers) {
    return i + 1 == num_layers ? "full_attention" : "linear_attention";
  };
  const auto written = [&](Json json) {
    const Status status = write_layer_types(ConfigFields(json, "config.json"), type_of, &json);
    return status.ok() ? json["layer_types"] : Json(status.message());
  };
  EXPECT_EQ(written({{"num_hidden_layers", 2}}),
            Json::array({"linear_attention", "full_attention"}));
  EXPECT_EQ(written({{"num_hidden_layers", 2}, {"layer_types", Json::array({"conv"})}}),
            Json::array({"conv"}));
  EXPECT_EQ(
      written({{"num_hidden_layers", 65537}}),
      "config.json: 'num_hidden_layers' is 65537, but must be at most 2^16; correct the file");
}

TEST(LayerPattern, LayersThatAttendAreListed) {
  const auto written = [](Json json) {
    const Status status =
        write_attending_layers(ConfigFields(json, "config.json"), "listed", "mamba", &json);
    return status.ok() ? json["layer_types"] : Json();
  };
  EXPECT_EQ(written({{"num_hidden_layers", 2}, {"listed", Json::array({1})}}),
            Json::array({"mamba", "full_attention"}));
  EXPECT_EQ(written({{"num_hidden_layers", 2}}), Json::array({"mamba", "mamba"}));
  for (const Json& wrong : {Json::array({2}), Json::array({-1}), Json::array({0.5}), Json("all")}) {
    EXPECT_EQ(written({{"num_hidden_layers", 2}, {"listed", wrong}}), Json()) << wrong;
  }
}

TEST(LayerPattern, LoopsAreANumberFromOneToSixteen) {
  int32_t loops = 3;
  const Json none = Json::object(), four = {{"num_loops", 4}};
  EXPECT_TRUE(read_loops(ConfigFields(none, "f"), "num_loops", &loops).ok());
  EXPECT_EQ(loops, 3);
  EXPECT_TRUE(read_loops(ConfigFields(four, "f"), "num_loops", &loops).ok());
  EXPECT_EQ(loops, 4);
  for (const int wrong : {0, 17}) {
    const Json json = {{"num_loops", wrong}};
    const Status status = read_loops(ConfigFields(json, "f"), "num_loops", &loops);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("num_loops"), std::string::npos);
  }
}

}  // namespace
}  // namespace foretoken
