#include "compat/combination.h"

#include <gtest/gtest.h>

#include "attention/families.h"

namespace foretoken {
namespace {

TEST(Combination, AConfigurationTellsAllButModelAndDevice) {
  EngineConfig config;
  config.device = "cuda";
  config.attention_backend = "FLASHINFER";
  config.kv_cache_dtype = "fp8";
  config.parallel.tensor_parallel_size = 4;
  config.parallel.pipeline_parallel_size = 2;
  config.parallel.enable_dbo = true;
  config.kv_offloading_size = 1;
  config.speculative.emplace_back().rejection_sample_method = "synthetic";
  const Combination c = combination_of(config);
  EXPECT_EQ(c.device, find_device_type("cuda"));
  EXPECT_EQ(c.attention, &flashinfer_attention());
  EXPECT_EQ(c.kv_cache_dtype, "fp8");
  EXPECT_EQ(c.num_ranks, 8);
  EXPECT_EQ(c.num_tensor_ranks(), 4);
  EXPECT_TRUE(c.two_lanes && c.host_blocks && c.prefix_caching && c.drafts && c.is_synthetic);
  EXPECT_TRUE(c.expert_parallel.is_false() && c.expressions.is_false() && c.lora.is_false());
  EXPECT_FALSE(c.latent.is_known());
  EXPECT_FALSE(c.max_rows || c.num_experts || c.dtype || c.model || c.layers);
}

TEST(Combination, ExpressionsAreReadFromTheChoiceOfAttention) {
  EngineConfig config;
  config.attention_backend = "(kv <= q or prompt)";
  const Combination c = combination_of(config);
  EXPECT_EQ(c.attention, &flex_attention());
  EXPECT_TRUE(c.expressions && c.whole_prompts);
  config.attention_backend = "flex(kv)";
  EXPECT_FALSE(combination_of(config).whole_prompts.is_known()) << "no expression";
  config.attention_backend = "auto";
  EXPECT_EQ(combination_of(config).attention, nullptr);
  EXPECT_TRUE(combination_of(config).whole_prompts.is_false());
}

}  // namespace
}  // namespace foretoken
