#pragma once
#include <foretoken/request.h>

#include "base/result.h"
#include "engine/request/parameters/request_limits.h"

namespace foretoken {

// Every field of a request that can be judged without its tokens: ranges, ids against the
// vocabulary, wishes against the engine's limits, and fields that exclude one another. The first
// fault found is returned, with its remedy. `has_tokenizer`: text can be made and read.
Status check_request(const Request& request, const RequestLimits& limits, bool has_tokenizer);

// Alternatives a token that `wanted` (SamplingParams::logprobs or prompt_logprobs) stands for.
inline int num_alternatives(int wanted, const RequestLimits& limits) {
  return wanted == -1 ? limits.vocab_size : wanted;
}

}  // namespace foretoken
