#pragma once
#include "serve/flow/serve_context.h"

namespace foretoken {

// llama.cpp's own endpoints, in its form.

// llama-server has one model, which answers whatever name a body gives. Takes a name that this
// server does not know out of it, with a warning; a server that is strict about fields leaves that
// to the readers.
void pass_over_model(const OpenAiDefaults& defaults, Body* body,
                     std::vector<std::string>* warnings);

// POST /completion.
Status handle_llama_completion(ServeContext& context,
                               const std::shared_ptr<http::Exchange>& exchange, Body body);
// POST /infill: what stands between "input_prefix" and "input_suffix". Unsupported where the model
// has no tokens for that.
Status handle_infill(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                     Body body);
// POST /apply-template: the prompt that messages make.
Status handle_apply_template(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                             Body body);
// POST /embedding: [{"index", "embedding": [[...]]}].
Status handle_llama_embedding(ServeContext& context,
                              const std::shared_ptr<http::Exchange>& exchange, Body body);

}  // namespace foretoken
