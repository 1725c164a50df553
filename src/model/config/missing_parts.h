#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace foretoken {

// What published models are made of and this engine has not. Sets are sums of bits.
enum MissingPart : uint32_t {
  kNoMissingPart = 0,
  kGateLimits = 1u << 1,
  kSparseAttention = 1u << 2,
  kLinearAttention = 1u << 3,
  kStateSpaceLayers = 1u << 4,
  kConvolutionLayers = 1u << 5,
  kNormKinds = 1u << 6,
  kLoopedLayers = 1u << 7,
  kShardedProjections = 1u << 8,
  kAttentionExperts = 1u << 9,
  kDepthResiduals = 1u << 10,
  kEncoder = 1u << 11,
  kResidualGates = 1u << 12,
  kGrowingQueries = 1u << 13,
  kStepRewards = 1u << 14,
  kMaskFilling = 1u << 15,
  kSeeingPrompts = 1u << 16,
  kRecurrences = 1u << 17,
  kInputExperts = 1u << 18,
  kBiasedHeadNorms = 1u << 19,
  kFactorizedQueries = 1u << 20,
};

// "sparse attention and an encoder"; empty for none.
std::string missing_parts_text(uint32_t parts);

// What the fields of a config.json ask for, whatever its architecture: those of its text_config
// where it has one. Fields of any type; unknown ones count for nothing.
uint32_t parts_asked_for(const nlohmann::json& config);

}  // namespace foretoken
