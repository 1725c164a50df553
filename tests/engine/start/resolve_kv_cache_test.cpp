#include "engine/start/resolve_kv_cache.h"

#include <gtest/gtest.h>

#include "support/claimed_device.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

constexpr const char* kAsksForFp8 =
    R"({"quantization_config": {"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"}})";

std::string resolved_kv_cache(const EngineConfig& config, const std::string& json,
                              DeviceType type = DeviceType::kCpu) {
  const test::ScratchFolder folder;
  folder.write("config.json", json);
  const test::ClaimedDevice device(type, false);
  const auto found = resolve_kv_cache_dtype(config, device, folder.path(), {});
  return found.ok() ? found.value() : found.status().message();
}

TEST(ResolveKvCache, AutoIsWhatTheCheckpointAsksFor) {
  EXPECT_EQ(resolved_kv_cache({}, "{}"), "auto");
  EXPECT_EQ(resolved_kv_cache({}, kAsksForFp8), "fp8");
  EXPECT_EQ(resolved_kv_cache({}, R"({"quantization_config": {"quant_method": "modelopt",
      "kv_cache_quant_algo": "NVFP4"}})"),
            "auto")
      << "what is not built is left";
}

TEST(ResolveKvCache, AFlagIsStronger) {
  for (const char* given : {"bfloat16", "int8", "fp8_e4m3"}) {
    EngineConfig config;
    config.kv_cache_dtype = given;
    EXPECT_EQ(resolved_kv_cache(config, kAsksForFp8), given);
  }
}

TEST(ResolveKvCache, ABackendThatCannotReadItKeepsTheModelsType) {
  EngineConfig config;
  EXPECT_EQ(resolved_kv_cache(config, kAsksForFp8, DeviceType::kCuda), "fp8");
  config.attention_backend = "FLASHINFER";
  EXPECT_EQ(resolved_kv_cache(config, kAsksForFp8, DeviceType::kCuda), "auto");
}

}  // namespace
}  // namespace foretoken
