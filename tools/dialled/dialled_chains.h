#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "dialled/dialled_writer.h"

namespace foretoken {

// A head for a dialled target that drafts a chain from its last state: after a share of ids it
// proposes what the target emits, after the others what it emits after one another.
struct DialledChain {
  enum class Kind : uint8_t {
    kMedusa,
    kMlp,        // a speculator with tied weights
    kAssistant,  // of one layer that sees all positions
  };
  Kind kind = Kind::kMedusa;
  double agreement = 0.8;
  int32_t num_draft_tokens = 4;
  int32_t clusters = 0;  // of an assistant's ids, of which it looks at all; 0: there are none
};

// Writes config.json and the weights of the head into `folder`, which is created: Medusa heads in
// FasterDecoding's layout (medusa_lm_head.safetensors), a speculator in IBM's, or an assistant in
// Gemma 4's. InvalidArgument names the size that does not work, or the file that cannot be written.
Status write_dialled_chain(const std::string& folder, const DialledShape& target,
                           const DialledChain& chain);

}  // namespace foretoken
