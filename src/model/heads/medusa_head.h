#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "device/device.h"
#include "model/config/config.h"
#include "model/draft_head.h"
#include "model/heads/chain_head.h"
#include "model/model.h"

namespace foretoken {

// What config.json of Medusa heads says: FasterDecoding's (medusa_num_heads, medusa_num_layers) or
// vLLM's (num_heads, num_hidden_layers, truncated_vocab_size).
struct MedusaConfig {
  int32_t num_heads = 0;
  int32_t num_layers = 1;  // residual blocks of a head
  int32_t vocab_size = 0;  // the target's
  int32_t rows = 0;        // of the output matrices; fewer than vocab_size: token_map names the ids
  bool shares_rows = false;  // one output matrix for all heads
};

// Reads <folder>/config.json. NotFound names a missing file; InvalidArgument a missing or wrong
// field, or a size that is not the target's; Unsupported what would draft badly.
Result<MedusaConfig> read_medusa_config(const std::string& folder, const ModelConfig& target);

// Loads the first `num_heads` Medusa heads (Cai et al. 2024) of a folder. Head i drafts token i of
// a chain, each from the target's state alone: x += silu(linear(x)) in every block, then its output
// matrix, the one that the heads share, or the target's. Tensors as FasterDecoding
// (`0.0.linear.weight`, `0.1.weight`) and vLLM (`blocks.0.layers.0.weight`, `lm_heads.0.weight`)
// name them. `target` outlives the head. options: max_rows, dummy, vocab_ids, target_folder,
// sharding and states.
Result<std::unique_ptr<ChainHead>> load_medusa_head(Device& device, const std::string& folder,
                                                    const MedusaConfig& config, int32_t num_heads,
                                                    Model& target, const DraftHeadOptions& options);

// Both for the row of a drafter.
Result<ChainFiles> read_medusa_files(const std::string& folder, const ModelConfig& target);

}  // namespace foretoken
