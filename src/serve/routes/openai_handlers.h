#pragma once
#include "serve/flow/serve_context.h"

namespace foretoken {

// POST /v1/chat/completions, /v1/completions and /v1/embeddings.
Status handle_openai(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                     OpenAiKind kind, const Body& body);

// POST /invocations, the only path that SageMaker calls: a body of a chat, a completion, a ranking,
// a score or of embeddings, told by its fields.
Status handle_invocation(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                         const Body& body);

// Runs a request that was parsed, and answers it in `format`'s way.
void start_generation(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                      const OpenAiRequest& request, PreparedText prepared, std::string id,
                      std::unique_ptr<AnswerFormat> format);

}  // namespace foretoken
