#include "serve/fields/kv_transfer.h"

#include <gtest/gtest.h>

#include <functional>

namespace foretoken {
namespace {

// What a text writes into a configuration.
EngineConfig after(const std::string& text, EngineConfig config = {}) {
  const Status status = read_kv_transfer(text, &config);
  EXPECT_TRUE(status.ok()) << status.message();
  return config;
}

std::string refusal(const std::string& text, EngineConfig config = {}) {
  const Status status = read_kv_transfer(text, &config);
  EXPECT_FALSE(status.ok()) << text;
  EXPECT_EQ(config.kv_offloading_size, EngineConfig().kv_offloading_size);
  return status.message();
}

TEST(KvTransfer, HostMemoryIsTheOffloadingSize) {
  EXPECT_EQ(after(R"({"kv_connector": "OffloadingConnector", "kv_role": "kv_both",
                      "kv_connector_extra_config": {"cpu_bytes_to_use": 137438953472}})")
                .kv_offloading_size,
            128);
  EXPECT_EQ(after(R"({"kv_connector": "SimpleCPUOffloadConnector", "kv_role": "kv_both",
                      "kv_connector_extra_config": {"cpu_bytes_to_use": "1073741824",
                                                    "lazy_offload": false}})")
                .kv_offloading_size,
            1);
  EXPECT_EQ(after(R"({"kv_connector": "SimpleCPUOffloadConnector"})").kv_offloading_size, 8);
}

TEST(KvTransfer, BytesOfARankAreTimesTheRanks) {
  EngineConfig ranks;
  ranks.parallel.tensor_parallel_size = 4;
  ranks.parallel.pipeline_parallel_size = 2;
  const char* both = R"({"kv_connector": "SimpleCPUOffloadConnector",
      "kv_connector_extra_config": {"cpu_bytes_to_use": 4096,
                                    "cpu_bytes_to_use_per_rank": 536870912}})";
  EXPECT_EQ(after(both, ranks).kv_offloading_size, 4);
}

TEST(KvTransfer, BlocksAreTokens) {
  const EngineConfig own = after(R"({"kv_connector": "OffloadingConnector",
      "kv_connector_extra_config": {"num_cpu_blocks": 1000, "block_size": 128}})");
  EXPECT_EQ(own.kv_offloading_tokens, 128'000);
  EXPECT_EQ(own.kv_offloading_size, 0);
  EngineConfig wide;
  wide.block_size = 32;
  EXPECT_EQ(after(R"({"kv_connector": "OffloadingConnector",
                      "kv_connector_extra_config": {"num_cpu_blocks": 10}})",
                  wide)
                .kv_offloading_tokens,
            320);
}

TEST(KvTransfer, NothingIsAskedWithoutAConnector) {
  for (const char* text : {"{}", R"({"kv_connector": null, "kv_role": "kv_both"})"}) {
    EXPECT_EQ(after(text).kv_offloading_size, 0) << text;
  }
}

TEST(KvTransfer, OthersAreRefusedWithARemedy) {
  const std::string remedy =
      "leave it out, or keep blocks in host memory with --kv-offloading-size";
  const std::string nixl = refusal(R"({"kv_connector": "NixlConnector", "kv_role": "kv_both"})");
  EXPECT_EQ(nixl, "--kv-transfer-config NixlConnector: KV blocks are not moved between servers; " +
                      remedy);
  EXPECT_EQ(refusal(R"({"kv_connector": "LMCacheConnectorV1"})"),
            "--kv-transfer-config LMCacheConnectorV1: LMCache is a program of its own, which is "
            "not called; " +
                remedy);
  EXPECT_NE(refusal(R"({"kv_connector": "OffloadingConnector"})").find("cpu_bytes_to_use"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"kv_connector": "OffloadingConnector", "kv_connector_extra_config":
                        {"num_cpu_blocks": 1152921504606846976, "block_size": 16}})")
                .find("use 68719476736 blocks at most"),
            std::string::npos);
  EngineConfig sized;
  sized.kv_offloading_size = 2;
  EXPECT_FALSE(read_kv_transfer(R"({"kv_connector": "SimpleCPUOffloadConnector"})", &sized).ok());
  EXPECT_NE(refusal("{").find("not valid JSON"), std::string::npos);
  EXPECT_NE(refusal(R"({"kv_connector": "OffloadingConnector",
                        "kv_connector_extra_config": {"cpu_bytes_to_use": "much"}})")
                .find("cpu_bytes_to_use"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
