#pragma once
#include <memory>
#include <string>

#include "base/result.h"
#include "device/device.h"
#include "model/draft_head.h"
#include "model/heads/assistant_config.h"
#include "model/heads/chain_head.h"
#include "model/model.h"

namespace foretoken {

// Loads one of Gemma 4's assistants. A row is pre_projection of [the target's embedding of the
// token, a state]; its layers attend to the target's keys and values up to the last position that
// has some, all drafts from the position behind it; what leaves the last norm goes to the output
// matrix and, through post_projection, to the next draft as its state. The first state is the
// target's. Tensors as Hugging Face names them. `target` outlives the head. options: max_model_len,
// max_rows, attention, dummy, rounding, vocab_ids, sharding and states. Unsupported where the keys
// and values lie in another stage.
Result<std::unique_ptr<ChainHead>> load_assistant_head(Device& device, const std::string& folder,
                                                       const AssistantConfig& config, Model& target,
                                                       const DraftHeadOptions& options);

// Both for the row of a drafter.
Result<ChainFiles> read_assistant_files(const std::string& folder, const ModelConfig& target);

}  // namespace foretoken
