#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "dialled/dialled_writer.h"

namespace foretoken {

// A head for a dialled target that drafts a chain from its last state: after a share of ids it
// proposes what the target emits, after the others what it emits after one another.
struct DialledChain {
  bool is_mlp = false;  // an MLP speculator with tied weights; otherwise Medusa heads
  double agreement = 0.8;
  int32_t num_draft_tokens = 4;
};

// Writes config.json and the weights of the head into `folder`, which is created: Medusa heads in
// FasterDecoding's layout (medusa_lm_head.safetensors), or a speculator in IBM's. InvalidArgument
// names the size that does not work, or the file that cannot be written.
Status write_dialled_chain(const std::string& folder, const DialledShape& target,
                           const DialledChain& chain);

}  // namespace foretoken
