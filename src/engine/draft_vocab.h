#pragma once
#include <foretoken/config.h>

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace foretoken {

// The target ids that a drafter may propose, best first: those of draft_vocab_file, a JSON array or
// numbers separated by white space, cut to draft_vocab_size; without a file the lowest ids; empty
// where neither is set. InvalidArgument names the file and the id that is no id of the target's
// vocabulary or stands there twice; NotFound a file that cannot be read.
Result<std::vector<int32_t>> read_draft_vocab(const SpeculativeConfig& config, int vocab_size);

}  // namespace foretoken
