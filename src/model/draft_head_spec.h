#pragma once
#include <cstdint>

#include "model/config/architecture.h"
#include "model/draft_head_config.h"
#include "model/layer/layer_spec.h"

namespace foretoken {

// Which layer of a head: of MTP modules and of heads that draft blocks there is one a module.
struct HeadLayerPlace {
  int32_t module = 0;
  int32_t depth = 0;  // behind the first of the module
};

// The decoder's layer as the head has it there: the first of an EAGLE head has no norm before it,
// the first of an EAGLE-3 head reads the embedding beside the state.
LayerSpec head_layer_spec(const DraftHeadConfig& config, const DecoderTraits& traits,
                          const HeadLayerPlace& place);

// Bytes that the head takes in device memory, without optional copies of what the target has.
int64_t draft_head_weight_bytes(const DraftHeadConfig& config, const ModelConfig& target);

}  // namespace foretoken
