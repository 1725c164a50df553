#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "device/arena.h"
#include "model/checkpoint.h"
#include "model/decoder_weights.h"
#include "model/draft_head.h"
#include "model/weight_loader.h"

namespace foretoken {

// One layer of a draft head in device memory and what leads into and out of it. Null: it has none.
struct DraftModuleWeights {
  const void* embedding = nullptr;  // [vocab, hidden]; its own or the target's
  PackedWeight fc;                  // [hidden, fc_inputs]
  int32_t fc_inputs = 0;
  const float* fc_bias = nullptr;
  const float* embed_norm = nullptr;  // [hidden]
  const float* state_norm = nullptr;  // [hidden]
  DecoderLayerWeights layer;
  const float* output_norm = nullptr;  // [hidden] before the output matrix
  PackedWeight own_head;
  DraftHead::Head head;  // own_head, one that modules share, or the target's
};

struct DraftHeadWeights {
  std::vector<DraftModuleWeights> modules;
  PackedWeight shared_head;  // rows of the target's output matrix for a reduced vocabulary
};

// What a draft head is loaded from and for.
struct DraftHeadSource {
  Device& device;
  const DraftHeadConfig& config;
  const DraftHeadOptions& options;
  Model& target;
  const Checkpoint* checkpoint;  // null: random weights
};

// Bytes that the head takes in device memory, without optional copies of what the target has.
int64_t draft_head_weight_bytes(const DraftHeadConfig& config, const ModelConfig& target);

// Loads the tensors under their published names, with and without a leading "model."; `arena` holds
// what is not packed. Errors name a missing, ill-shaped or unused tensor.
Result<DraftHeadWeights> load_draft_head_weights(Arena& arena, const DraftHeadSource& source,
                                                 WeightLoader& loader);

}  // namespace foretoken
