#pragma once
#include <foretoken/config.h>

#include <algorithm>

#include "engine/start/make_drafters.h"

namespace foretoken {

// Logits rows of the largest step whose prompts are not scored.
inline int max_logits_rows(const EngineConfig& config) {
  return std::min(config.max_num_batched_tokens,
                  (config.max_num_seqs + num_branches(config)) * (max_draft_tokens(config) + 1));
}

// Logits rows that are computed at once.
inline int logits_tile(const EngineConfig& config) {
  constexpr int kMax = 256;
  return std::min(kMax, max_logits_rows(config));
}

}  // namespace foretoken
