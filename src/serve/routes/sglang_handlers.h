#pragma once
#include "serve/flow/serve_context.h"

namespace foretoken {

// SGLang's own endpoints, in its form.

// POST /generate: prompts as texts or ids. The forms of other servers at this path are refused with
// the endpoint to use.
Status handle_generate(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                       Body body);
// POST /abort_request: {"rid": id} or {"abort_all": true}; ends their texts with "abort".
Status handle_sglang_abort(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                           const Body& body);
// GET /get_model_info: what SGLang's own clients ask for first.
nlohmann::ordered_json sglang_model_info(const ServeContext& context);
// GET /get_load and /v1/loads: an entry for each engine, by which routers choose the least busy.
nlohmann::ordered_json sglang_loads(const ServeContext& context);

}  // namespace foretoken
