#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/config/config.h"

namespace foretoken {
namespace {

Result<ModelConfig> parsed(const nlohmann::json& changes) {
  nlohmann::json json = {{"architectures", {"RWKV7ForCausalLM"}},
                         {"vocab_size", 64},
                         {"hidden_size", 1024},
                         {"num_hidden_layers", 2}};
  json.update(changes);
  return parse_model_config(json, nlohmann::json::object(), {}, "c");
}

// Python rounds 2.5 to 2.
TEST(Rwkv7, RanksThatAFileLeavesOut) {
  const auto config = parsed(nlohmann::json::object());
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config.value().recurrent.ranks,
            (WkvRanks{.decay = 64, .rate = 64, .share = 64, .gate = 160}));
  EXPECT_EQ(config.value().intermediate_size, 4096);
}

TEST(Rwkv7, HeadsByTheirElementsOrTheirNumber) {
  const auto heads = [](const nlohmann::json& changes) {
    const auto config = parsed(changes);
    return config.ok() ? config.value().recurrent.value_heads : -1;
  };
  EXPECT_EQ(heads(nlohmann::json::object()), 16);
  EXPECT_EQ(heads({{"head_dim", nullptr}, {"num_heads", 32}}), 32);
  EXPECT_EQ(heads({{"head_dim", 128}, {"num_heads", 32}}), 8);
  EXPECT_NE(parsed({{"num_heads", 24}}).status().message().find("'num_heads' is 24"),
            std::string::npos);
  EXPECT_NE(parsed({{"num_heads", 4}}).status().message().find("'num_heads' is 4"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
