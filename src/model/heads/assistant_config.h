#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/config/config.h"

namespace foretoken {

// What config.json of one of Gemma 4's assistants says (Google 2026): a few of Gemma 4's layers,
// which make queries alone and attend to what the target keeps.
struct AssistantConfig {
  ModelConfig layer;     // sizes, layers and rope, of the target's type
  int32_t clusters = 0;  // of ids, of which logits are made of `top`; 0: of all ids
  int32_t top = 0;
};

// Reads <folder>/config.json. NotFound names a missing file; InvalidArgument a missing or wrong
// field, a size that is not the target's, or a layer that has none of the target's to read.
Result<AssistantConfig> read_assistant_config(const std::string& folder, const ModelConfig& target);

}  // namespace foretoken
