#pragma once
#include <foretoken/config.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace foretoken {

// The target ids of a reduced draft vocabulary (Zhao et al. 2025, FR-Spec: drafts rarely need the
// long tail, and the output matrix is most of a small drafter's time), ascending, so that ties fall
// as they do in the whole one. draft_vocab_size of the ids that draft_vocab_file lists, best first
// (a JSON array, or numbers between white space), or without a file the lowest ones; without a size
// the whole file. `eos_ids` are always among them, in place of the worst ones. Empty when the
// configuration asks for nothing. InvalidArgument or NotFound names the field or file at fault.
Result<std::vector<int32_t>> choose_draft_vocab(const SpeculativeConfig& config, int32_t vocab_size,
                                                std::span<const int32_t> eos_ids);

}  // namespace foretoken
