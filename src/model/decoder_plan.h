#pragma once
#include <cstdint>
#include <vector>

#include "attention/kv_cache.h"
#include "model/config.h"

namespace foretoken {

// Which of RopeConfigs turns the heads of a layer.
enum class LayerRope : uint8_t { kNone, kFull, kWindowed };

struct LayerPlan {
  int32_t window = 0;       // 0: all positions; the layer is of the full group
  int32_t group_index = 0;  // among the layers of its KV group
  LayerRope rope = LayerRope::kFull;
};

// How the layers of a decoder use KV caches and positions.
struct DecoderPlan {
  std::vector<LayerPlan> layers;
  std::vector<KvGroupSpec> groups;  // as of Model::kv_groups
};

// The plan for sequences of at most max_model_len tokens: a window that none of them outgrows is
// left out.
DecoderPlan plan_decoder(const ModelConfig& config, int32_t max_model_len);

}  // namespace foretoken
