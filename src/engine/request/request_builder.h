#pragma once
#include <foretoken/request.h>

#include <memory>
#include <vector>

#include "base/result.h"
#include "engine/request/parameters/request_limits.h"
#include "engine/request/request_state.h"
#include "text/tokenizer.h"

namespace foretoken {

// Tokenizes and checks a request and makes the records of its choices, with all memory reserved
// that their runs need. Errors name the field and what it may be. `tokenizer` may be null (dummy
// models): then only token ids can be given. `number` tells unseeded requests apart; the records
// take sequence ids from it on. Any thread.
Result<std::vector<std::unique_ptr<RequestState>>> build_request(Request request,
                                                                 OutputCallback callback,
                                                                 const RequestLimits& limits,
                                                                 const Tokenizer* tokenizer,
                                                                 uint64_t number);

}  // namespace foretoken
