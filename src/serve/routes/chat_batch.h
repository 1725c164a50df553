#pragma once
#include "serve/flow/serve_context.h"

namespace foretoken {

// vLLM's POST /v1/chat/completions/batch: a body of /v1/chat/completions whose 'messages' is a list
// of conversations, answered by one choice for each, in order. Streams, tools and n > 1 are
// refused.
Status handle_chat_batch(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                         const Body& body);

// Its conversations, each as a chat of its own. The error names the conversation at fault.
Result<std::vector<OpenAiRequest>> parse_chat_batch(const Body& body,
                                                    const OpenAiDefaults& defaults);

}  // namespace foretoken
