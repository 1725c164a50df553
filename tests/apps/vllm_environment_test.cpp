#include <gtest/gtest.h>

#include "apps/command_run.h"

namespace foretoken {
namespace {

std::string said(std::vector<std::string> environment) {
  CommandSetting setting;
  setting.environment = std::move(environment);
  return run_command({"serve", "/no/such/folder"}, setting).err;
}

TEST(VllmEnvironment, WhatHasAnEffectIsNotWarnedOf) {
  const std::string error =
      said({"VLLM_BATCH_INVARIANT=1", "VLLM_NCCL_SO_PATH=/lib/x.so", "VLLM_API_KEY=k",
            "VLLM_SERVICE_HOST=10.0.0.1", "VLLM_CPU_KVCACHE_SPACE=1"});
  EXPECT_EQ(error.find("has no effect"), std::string::npos) << error;
  EXPECT_NE(said({"VLLM_PORT=8001"}).find("VLLM_PORT has no effect; use --port"),
            std::string::npos);
  EXPECT_NE(said({"VLLM_CPU_KVCACHE_SPACE=lots"}).find("VLLM_CPU_KVCACHE_SPACE=lots"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
