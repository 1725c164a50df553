#pragma once
#include "serve/flow/serve_context.h"

namespace foretoken {

// POST /v1/score: how near texts are, in pairs.
Status handle_score(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                    const Body& body);
// POST /v1/rerank: documents in order of how near they are to a query.
Status handle_rerank(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                     const Body& body);
// POST /pooling: vectors of texts in vLLM's form.
Status handle_pooling(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                      Body body);

// Renders, admits and runs a request for embeddings, answered in the form that `make_format` makes
// of the answer's label.
Status run_pooled(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                  const char* id_prefix, OpenAiRequest request,
                  const std::function<std::unique_ptr<AnswerFormat>(OpenAiLabel)>& make_format);

}  // namespace foretoken
