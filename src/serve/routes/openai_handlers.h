#pragma once
#include "serve/flow/serve_context.h"

namespace foretoken {

// POST /v1/chat/completions, /v1/completions and /v1/embeddings.
Status handle_openai(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                     OpenAiKind kind, const Body& body);

// POST /invocations, the only path that SageMaker calls: a body of a chat, a completion, a ranking,
// a score or of embeddings, told by its fields; X-Amzn-SageMaker-Adapter-Identifier names the
// model.
Status handle_invocation(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                         const Body& body);

// Reads a body of OpenAI's as parse_openai_request() does; the 'suffix' of a completion asks a
// model that was taught to fill gaps for what stands before it.
Result<OpenAiRequest> parse_text_request(const ServeContext& context, OpenAiKind kind,
                                         const Body& body);

// Runs a request that was parsed, and answers it in `format`'s way.
void start_generation(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                      const OpenAiRequest& request, PreparedText prepared, std::string id,
                      std::unique_ptr<AnswerFormat> format);

}  // namespace foretoken
