#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/config/config.h"

namespace foretoken {
namespace {

// Of the first layer.
int32_t window_of(const nlohmann::json& changes) {
  nlohmann::json json = {{"architectures", {"Plamo3ForCausalLM"}},
                         {"vocab_size", 64},
                         {"hidden_size", 32},
                         {"intermediate_size", 48},
                         {"num_hidden_layers", 8},
                         {"num_attention_heads", 4},
                         {"window_size", 128}};
  json.update(changes);
  const auto config = parse_model_config(json, nlohmann::json::object(), {}, "c");
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? config.value().layers.front().window : -1;
}

TEST(Plamo3, WindowsOfOlderFilesCountPositionsBeforeARow) {
  EXPECT_EQ(window_of(nlohmann::json::object()), 129);
  EXPECT_EQ(window_of({{"rope_scaling_factor", nullptr}}), 129);
  EXPECT_EQ(window_of({{"rope_scaling_factor", 1}}), 128);
}

}  // namespace
}  // namespace foretoken
