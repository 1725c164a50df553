#include "model/arch/recurrent/nemotron_blocks.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace foretoken {
namespace {

using Json = nlohmann::json;

Json nemotron_blocks() {
  return {{"block_configs",
           {{{"block_type", "mamba"}},
            {{"block_type", "moe"}, {"moe_intermediate_size", 32}, {"num_experts_per_tok", 2}},
            {{"block_type", "moe"}, {"moe_intermediate_size", 64}, {"num_experts_per_tok", 4}}}}};
}

TEST(NemotronBlocks, TellWhatLayersAreAndTheirSizes) {
  const Json file = nemotron_blocks();
  const ConfigFields fields(file, "config.json");
  Json all = file;
  ASSERT_TRUE(write_block_configs(fields, &all).ok());
  EXPECT_EQ(all["layers_block_type"], Json({"mamba", "moe", "moe"}));
  EXPECT_EQ(all["moe_intermediate_size"], 32);
  std::vector<LayerConfig> layers(3);
  ASSERT_TRUE(read_block_sizes(fields, &layers).ok());
  EXPECT_EQ(layers[0].expert_inner, 0);
  EXPECT_EQ(layers[1].expert_inner, 32);
  EXPECT_EQ(layers[2].expert_inner, 64);
  EXPECT_EQ(layers[2].top_experts, 4);
}

// The module's layers are read with the sizes of the whole model.
TEST(NemotronBlocks, ModulesSayWhatTheModelHasInCommon) {
  Json file = nemotron_blocks();
  file["mtp_block_configs"] = {{{"block_type", "attention"}},
                               {{"block_type", "moe"}, {"moe_intermediate_size", 96}}};
  Json all = file;
  ASSERT_TRUE(write_block_configs(ConfigFields(file, "config.json"), &all).ok());
  EXPECT_EQ(all["mtp_layers_block_type"], Json({"attention", "moe"}));
  EXPECT_EQ(all["moe_intermediate_size"], 96);
}

TEST(NemotronBlocks, RefuseWhatIsNotBuilt) {
  Json file = nemotron_blocks();
  file["block_configs"][0]["q_indexer_top_k"] = 2048;
  Json all = file;
  Status status = write_block_configs(ConfigFields(file, "config.json"), &all);
  EXPECT_NE(status.message().find("block_configs 0: 'q_indexer_top_k' is not supported"),
            std::string::npos)
      << status.message();
  file = nemotron_blocks();
  file["block_configs"][1]["n_routed_experts"] = 8;
  file["block_configs"][2]["n_routed_experts"] = 16;
  status = write_block_configs(ConfigFields(file, "config.json"), &all);
  EXPECT_NE(status.message().find("'n_routed_experts' 16 is not supported, as other layers have 8"),
            std::string::npos)
      << status.message();
  file["block_configs"] = Json::array({1});
  EXPECT_FALSE(write_block_configs(ConfigFields(file, "config.json"), &all).ok());
}

}  // namespace
}  // namespace foretoken
