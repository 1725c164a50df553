#pragma once
#include <cstdint>
#include <vector>

#include "attention/kv_cache.h"
#include "model/config.h"
#include "model/stages.h"

namespace foretoken {

// Which of RopeConfigs turns the heads of a layer.
enum class LayerRope : uint8_t { kNone, kFull, kWindowed };

struct LayerPlan {
  int32_t window = 0;           // 0: all positions
  bool windowed_group = false;  // which KV group holds the layer
  int32_t group_index = 0;      // among the layers of its group
  LayerRope rope = LayerRope::kFull;

  // Whether the same rows see the same positions, through the same block tables.
  bool sees_as(const LayerPlan& other) const {
    return window == other.window && windowed_group == other.windowed_group;
  }
};

// How the layers of a decoder use KV caches and positions.
struct DecoderPlan {
  std::vector<LayerPlan> layers;
  std::vector<KvGroupSpec> groups;  // as of Model::kv_groups
};

// The plan for sequences of at most max_model_len tokens: a window that none of them outgrows is
// left out. one_kv_group: layers with a window are of the full group too. Groups hold the layers of
// this rank's stage, at least one each, so that all ranks have the same groups.
DecoderPlan plan_decoder(const ModelConfig& config, int32_t max_model_len, bool one_kv_group,
                         const Stages& stages = {}, KvFormat format = KvFormat::kPlain);

}  // namespace foretoken
