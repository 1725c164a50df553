#include "model/config/missing_parts.h"

#include <gtest/gtest.h>

#include <set>

namespace foretoken {
namespace {

TEST(MissingParts, TextIsAListOfNouns) {
  EXPECT_EQ(missing_parts_text(kNoMissingPart), "");
  EXPECT_EQ(missing_parts_text(kSparseAttention), "sparse attention");
  EXPECT_EQ(missing_parts_text(kConvolutionLayers | kSparseAttention),
            "sparse attention and convolution layers");
  EXPECT_EQ(missing_parts_text(kConvolutionLayers | kSparseAttention | kNormKinds),
            "sparse attention, convolution layers and norms of several kinds");
}

TEST(MissingParts, EachHasOneName) {
  std::set<std::string> names;
  for (uint32_t part = kGateLimits; part <= kFactorizedQueries; part <<= 1) {
    const std::string name = missing_parts_text(part);
    EXPECT_FALSE(name.empty() || name.find(" and ") != std::string::npos) << part << ": " << name;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

TEST(MissingParts, FieldsTellThem) {
  EXPECT_EQ(parts_asked_for({{"index_topk", 2048}}), kSparseAttention);
  EXPECT_EQ(parts_asked_for({{"index_topk", 0}}), kNoMissingPart);
  EXPECT_EQ(parts_asked_for({{"index_topk", nullptr}}), kNoMissingPart);
  EXPECT_EQ(parts_asked_for({{"num_experts", 64}, {"kv_lora_rank", 512}}), kNoMissingPart);
  EXPECT_EQ(parts_asked_for({{"is_encoder_decoder", true}}), kEncoder);
  EXPECT_EQ(parts_asked_for({{"is_encoder_decoder", false}}), kNoMissingPart);
  EXPECT_EQ(parts_asked_for({{"compress_ratios", {0, 4}}}), kSparseAttention);
  EXPECT_EQ(parts_asked_for({{"compress_ratios", nlohmann::json::array()}}), kNoMissingPart);
  EXPECT_EQ(parts_asked_for({{"ssm_state_size", "large"}}), kNoMissingPart);
  EXPECT_EQ(parts_asked_for({{"num_loops", 2}}), kLoopedLayers);
  EXPECT_EQ(parts_asked_for({{"num_loops", 1}}), kNoMissingPart);
}

TEST(MissingParts, LooksIntoTheTextConfig) {
  EXPECT_EQ(
      parts_asked_for({{"text_config", {{"index_topk", 2048}, {"is_encoder_decoder", true}}}}),
      kSparseAttention | kEncoder);
  EXPECT_EQ(parts_asked_for({{"text_config", 3}}), kNoMissingPart);
  EXPECT_EQ(parts_asked_for(nlohmann::json::array()), kNoMissingPart);
}

}  // namespace
}  // namespace foretoken
