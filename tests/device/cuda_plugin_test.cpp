#include "device/cuda_plugin.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace foretoken {
namespace {

TEST(CudaPlugin, KernelsAreLoadedAtStartUnlessTheUserSaysOtherwise) {
  unsetenv("CUDA_MODULE_LOADING");
  load_kernels_at_start();
  EXPECT_STREQ(std::getenv("CUDA_MODULE_LOADING"), "EAGER");
  setenv("CUDA_MODULE_LOADING", "LAZY", 1);
  load_kernels_at_start();
  EXPECT_STREQ(std::getenv("CUDA_MODULE_LOADING"), "LAZY");
  unsetenv("CUDA_MODULE_LOADING");
}

TEST(CudaPlugin, AMissingPluginIsASentenceWithARemedy) {
  setenv("FORETOKEN_CUDA_PLUGIN", "/nonexistent/libforetoken_cuda.so", 1);
  const auto device = open_cuda_device(0);
  unsetenv("FORETOKEN_CUDA_PLUGIN");
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(device.status().message().find("/nonexistent/libforetoken_cuda.so"), std::string::npos);
  EXPECT_NE(device.status().message().find("--device cpu"), std::string::npos);
}

TEST(CudaPlugin, ALibraryWithoutTheSymbolsIsRefused) {
  setenv("FORETOKEN_CUDA_PLUGIN", "libm.so.6", 1);
  const auto device = open_cuda_device(0);
  unsetenv("FORETOKEN_CUDA_PLUGIN");
  ASSERT_FALSE(device.ok());
  EXPECT_NE(device.status().message().find("another version"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
