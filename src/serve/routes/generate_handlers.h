#pragma once
#include "serve/flow/serve_context.h"

namespace foretoken {

// SGLang's and text-generation-inference's own endpoints, each in its form.

// POST /generate: prompts as texts or ids, or a body of text-generation-inference. The forms of
// other servers at this path are refused with the endpoint to use.
Status handle_generate(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                       Body body);
// POST /abort_request: {"rid": id} or {"abort_all": true}; ends their texts with "abort".
Status handle_sglang_abort(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                           const Body& body);
// GET /get_model_info: what SGLang's own clients ask for first.
nlohmann::ordered_json sglang_model_info(const ServeContext& context);
// GET /get_load and /v1/loads: an entry for each engine, by which routers choose the least busy.
nlohmann::ordered_json sglang_loads(const ServeContext& context);

// Where a body of text-generation-inference came to: it decides whether the answer is streamed, and
// its form.
enum class TgiPath { kRoot, kGenerate, kStream };

// POST / (whole answers are a list), /generate, /generate_stream (always streamed).
Status handle_tgi(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                  TgiPath path, Body body);
// GET /info, with names of text-embeddings-inference beside its own.
nlohmann::ordered_json tgi_info(const ServeContext& context);

}  // namespace foretoken
