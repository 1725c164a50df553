#pragma once
#include <foretoken/request.h>

#include <memory>

#include "base/result.h"
#include "engine/request_state.h"
#include "model/config.h"
#include "text/tokenizer.h"

namespace foretoken {

// The limits that requests are checked against.
struct RequestLimits {
  int max_model_len = 0;
  int vocab_size = 0;
  int max_window_blocks = 0;       // of the longest sequence; 0: no windowed layers
  int num_speculative_tokens = 0;  // of the engine, 0 without a drafter
  uint64_t seed = 0;
  std::vector<int32_t> eos_token_ids;
};

// Tokenizes and checks a request and makes its record, with all memory reserved that its run
// needs. Errors name the field and what it may be. `tokenizer` may be null (dummy models): then
// only token ids can be given. `number` tells unseeded requests apart. Any thread.
Result<std::unique_ptr<RequestState>> build_request(Request request, OutputCallback callback,
                                                    const RequestLimits& limits,
                                                    const Tokenizer* tokenizer, uint64_t number,
                                                    int max_blocks);

}  // namespace foretoken
