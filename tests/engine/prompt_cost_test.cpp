#include "engine/prompt_cost.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

// Llama-3.2-1B's shape.
ModelConfig shape() {
  ModelConfig config;
  config.hidden_size = 2048;
  config.intermediate_size = 8192;
  config.num_heads = 32;
  config.num_kv_heads = 8;
  config.head_dim = 64;
  config.layers.resize(16);
  return config;
}

TEST(PromptCost, AFewThousandTokensWeighAsMuchAsARow) { EXPECT_EQ(context_per_row(shape()), 2474); }

TEST(PromptCost, OnlyLayersWithoutWindowsGrow) {
  ModelConfig config = shape();
  for (size_t i = 0; i < 12; ++i) config.layers[i].window = 512;
  EXPECT_EQ(context_per_row(config), 4 * 2474 + 2);
  for (LayerConfig& layer : config.layers) layer.window = 512;
  EXPECT_EQ(context_per_row(config), 0);
}

}  // namespace
}  // namespace foretoken
