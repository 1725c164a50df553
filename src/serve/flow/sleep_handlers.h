#pragma once
#include <memory>

#include "http/message/exchange.h"
#include "serve/flow/serve_context.h"

namespace foretoken {

// POST /sleep?level=1&mode=abort, as of Engine::sleep: mode "abort" ends the requests that are
// there, "wait" waits for them. Answered from the pool when it is so.
void answer_sleep(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange);

// POST /wake_up?tags=weights&tags=kv_cache: as of Engine::wake_up.
void answer_wake_up(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange);

}  // namespace foretoken
