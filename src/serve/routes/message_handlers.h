#pragma once
#include "serve/flow/serve_context.h"

namespace foretoken {

// Anthropic's API: POST /v1/messages and /v1/messages/count_tokens.
Status handle_messages(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                       Body body);
Status handle_count_tokens(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                           const Body& body);

}  // namespace foretoken
