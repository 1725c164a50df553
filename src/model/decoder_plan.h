#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "attention/kv_cache.h"
#include "base/result.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/model.h"
#include "model/weights/stages.h"

namespace foretoken {

// Which of RopeConfigs turns the heads of a layer.
enum class LayerRope : uint8_t { kNone, kFull, kWindowed };

struct LayerPlan {
  int32_t window = 0;           // 0: all positions
  bool windowed_group = false;  // which KV group holds the layer
  int32_t group_index = 0;      // among the layers of its group
  LayerRope rope = LayerRope::kFull;
  // Of its mixer; 0: it has none, and no KV.
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t chunk = 0;         // as of AttentionArgs
  int32_t value_dim = 0;     // as of KvLayer
  bool chooses = false;      // rows see what an indexer chooses for them
  int32_t index_place = -1;  // of its indexer, among those of its group; -1: it has none
  // Of its compressed entries: their kind in the full group, and the place among those.
  int32_t compressed_kind = 0;
  int32_t compressed_place = -1;
  StateSpec state;  // of its mixer, where the layer is of this rank's stage

  // Whether the same rows see the same positions with as many heads, through the same block tables.
  bool sees_as(const LayerPlan& other) const {
    return !chooses && !other.chooses && window == other.window &&
           windowed_group == other.windowed_group && num_heads == other.num_heads &&
           num_kv_heads == other.num_kv_heads && head_dim == other.head_dim &&
           chunk == other.chunk && value_dim == other.value_dim;
  }
};

// How the layers of a decoder use KV caches and positions.
struct DecoderPlan {
  std::vector<LayerPlan> layers;
  std::vector<KvGroupSpec> groups;  // as of Model::kv_groups

  // Whether the caches are laid out as the groups are.
  bool fits(const KvCaches& caches) const {
    const auto is_laid_out = [&](const KvCache* cache, size_t group) {
      return cache != nullptr && cache->spec() == groups[group];
    };
    return is_laid_out(caches.full, 0) && (groups.size() == 1 || is_laid_out(caches.windowed, 1));
  }
};

// What rows see where those of a span see one another (ModelConfig::bidirectional).
class SpanSight {
 public:
  // Nothing for a model whose rows see what is before them. In one lane, or in two.
  Status take(const ModelConfig& config, const ScratchSource& source, int num_lanes);
  // Enqueues what the rows of a pass see. A span has a whole prompt.
  void begin(Queue& queue, const StepTensors& tensors, const ForwardRows& rows) const;
  // Of a lane, as of LayerKv.
  int32_t* last_seen(int lane) const {
    return last_seen_ == nullptr ? nullptr : last_seen_ + int64_t{lane} * lane_offset_;
  }

 private:
  int32_t* last_seen_ = nullptr;  // [max_rows] of each lane
  int32_t lane_offset_ = 0;
};

// What a plan is made for.
struct DecoderPlanOptions {
  int32_t max_model_len = 0;  // a window that no sequence outgrows is left out
  bool one_kv_group = false;  // layers with a window are of the full group too
  KvFormat format = KvFormat::kPlain;
  ContextRanks context = {};  // that share the positions
};

// The plan of a rank's part of the layers. `config` gives their rope and their type. Groups hold
// the layers of this rank's stage, at least one each, so that all ranks have the same groups.
DecoderPlan plan_decoder(const ModelConfig& config, std::span<const LayerSpec> layers,
                         const DecoderPlanOptions& options, const Stages& stages = {});

}  // namespace foretoken
