#pragma once
#include "serve/flow/serve_context.h"

namespace foretoken {

// {"object": "list", "data": [...], "models": [...]} of GET /v1/models; the second list is that of
// Ollama's GET /api/tags, or empty. "first_id", "last_id" and "has_more" are Anthropic's: all are
// on one page.
nlohmann::ordered_json models_body(const ServeContext& context, bool with_ollamas);
// One of them, or kNotFound.
Result<nlohmann::ordered_json> model_body(const ServeContext& context, const std::string& id);

// GET /server_info: {"vllm_config": what the engine runs with, "version"}.
nlohmann::ordered_json server_info_body(const ServeContext& context);

// Ok while the engine takes requests.
Status engine_health(Engine& engine);

// GET /load: {"server_load": requests that wait or run}.
nlohmann::ordered_json load_body(const ServeContext& context);

// POST /abort_requests: {"request_ids": [...]} or {} for all; ends their texts with "abort".
// Answers {"aborted": how many}.
Status handle_abort(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                    const Body& body);

}  // namespace foretoken
