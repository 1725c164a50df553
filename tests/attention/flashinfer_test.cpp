#include "attention/flashinfer.h"

#include <gtest/gtest.h>

#include "attention/portable.h"
#include "support/claimed_device.h"

namespace foretoken {
namespace {

TEST(FlashInferAttention, RunsWhereTheDeviceHasTheKernel) {
  const AttentionBackend& backend = flashinfer_attention();
  EXPECT_FALSE(backend.traits().batch_invariant);
  EXPECT_TRUE(backend.runs_on(test::ClaimedDevice(DeviceType::kCuda, true)));
  EXPECT_FALSE(backend.runs_on(test::ClaimedDevice(DeviceType::kCuda, false)));
  EXPECT_FALSE(backend.runs_on(test::ClaimedDevice(DeviceType::kCpu, false)));
}

TEST(FlashInferAttention, ServesModelsOfWhichItTakesALayer) {
  const AttentionDemand llama{DType::kBF16, 128, 0, true};
  const auto serves = [](AttentionDemand demand) { return flashinfer_attention().serves(demand); };
  EXPECT_TRUE(serves(llama));
  for (const int head_dim : {64, 80, 128, 256}) {
    AttentionDemand other = llama;
    other.head_dim = head_dim;
    EXPECT_EQ(serves(other), head_dim == 64 || head_dim == 128);
    EXPECT_TRUE(portable_attention().serves(other));
  }
  EXPECT_FALSE(serves({DType::kF32, 128, 0, true}));
  EXPECT_FALSE(serves({DType::kBF16, 128, 30.0f, true}));
  EXPECT_FALSE(serves({DType::kBF16, 128, 0, false}));
}

}  // namespace
}  // namespace foretoken
