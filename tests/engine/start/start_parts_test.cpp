#include "engine/start/start_parts.h"

#include <gtest/gtest.h>

#include "support/claimed_device.h"

namespace foretoken {
namespace {

TEST(StartParts, ConfigurationDeviceAndModelAreInOneCombination) {
  const test::ClaimedDevice device(DeviceType::kCuda, true);
  EngineConfig config;
  config.device = "cuda";
  config.block_size = 64;
  config.parallel.tensor_parallel_size = 2;
  ModelConfig model;
  model.dtype = DType::kBF16;
  model.experts.count = 8;
  model.layers.resize(2);
  const Combination c = parts_of(config, device, model);
  EXPECT_EQ(c.opened, &device);
  EXPECT_EQ(c.device->type, DeviceType::kCuda);
  EXPECT_EQ(c.num_experts, 8);
  EXPECT_EQ(c.num_ranks, 2);
  EXPECT_EQ(c.dtype, DType::kBF16);
  EXPECT_EQ(c.model->block_size, 64);
  EXPECT_TRUE(c.layers.has_value());
  // All that a start can tell is told; requests and the exchange of ranks are not known yet.
  for (const Fact& fact :
       {c.latent, c.batch_invariant, c.expressions, c.whole_prompts, c.has_windows,
        c.chooses_blocks, c.lora, c.drafts, c.is_synthetic, c.expert_parallel, c.two_lanes,
        c.uses_mpi, c.host_blocks, c.prefix_caching}) {
    EXPECT_TRUE(fact.is_known());
  }
  EXPECT_FALSE(c.structured_outputs.is_known() || c.only_pieces.is_known());
}

}  // namespace
}  // namespace foretoken
