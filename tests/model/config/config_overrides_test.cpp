#include "model/config/config_overrides.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using Json = nlohmann::json;

Json laid_over(const char* file, const char* overrides) {
  return with_overrides(Json::parse(file), Json::parse(overrides));
}

TEST(ConfigOverrides, AreMergedInsideObjects) {
  EXPECT_EQ(laid_over(R"({"a": 1, "b": {"c": 2, "d": 3}})", R"({"b": {"c": 4}, "e": null})"),
            Json::parse(R"({"a": 1, "b": {"c": 4, "d": 3}, "e": null})"));
}

// A decoder's field is meant wherever the file keeps it.
TEST(ConfigOverrides, ReachTheDecoder) {
  const char* file = R"({"model_type": "m", "dtype": "bfloat16",
                         "text_config": {"model_type": "t", "sliding_window": 8}})";
  EXPECT_EQ(laid_over(file, R"({"sliding_window": 16, "head_dim": 4, "dtype": "float32",
                                "model_type": "n"})"),
            Json::parse(R"({"model_type": "n", "dtype": "float32", "sliding_window": 16,
                            "head_dim": 4,
                            "text_config": {"model_type": "t", "sliding_window": 16,
                                            "head_dim": 4}})"));
  EXPECT_EQ(laid_over(file, R"({"sliding_window": 16, "text_config": {"sliding_window": 32}})")
                .at("text_config"),
            Json::parse(R"({"model_type": "t", "sliding_window": 32})"));
}

TEST(ConfigOverrides, RopeIsWhereTheFileKeepsIt) {
  EXPECT_EQ(laid_over(R"({"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}})",
                      R"({"rope_theta": 1e6})")
                .at("rope_parameters"),
            Json::parse(R"({"rope_type": "default", "rope_theta": 1e6})"));
  EXPECT_EQ(laid_over(R"({"text_config": {"rope_parameters": {"full_attention": {"rope_theta": 1},
                          "sliding_attention": {"rope_theta": 2}}}})",
                      R"({"rope_theta": 3})")
                .at("text_config")
                .at("rope_parameters"),
            Json::parse(R"({"full_attention": {"rope_theta": 3},
                            "sliding_attention": {"rope_theta": 2}})"));
  EXPECT_EQ(laid_over(R"({"rope_theta": 1, "rope_parameters": {"rope_theta": 2}})",
                      R"({"rope_theta": 3, "rope_parameters": {"rope_theta": 4}})")
                .at("rope_parameters"),
            Json::parse(R"({"rope_theta": 4})"));
}

TEST(ConfigOverrides, ScalingEndsAndIsReplaced) {
  EXPECT_EQ(laid_over(R"({"rope_parameters": {"rope_type": "yarn", "factor": 4, "rope_theta": 2}})",
                      R"({"rope_scaling": null})")
                .at("rope_parameters"),
            Json::parse(R"({"rope_type": "default", "rope_theta": 2})"));
  EXPECT_FALSE(laid_over(R"({"rope_scaling": {"rope_type": "yarn", "factor": 4}})",
                         R"({"rope_parameters": {"rope_type": "default"}})")
                   .contains("rope_scaling"));
}

}  // namespace
}  // namespace foretoken
