#pragma once
#include "serve/flow/serve_context.h"

namespace foretoken {

// GET /props: what the server and its model are, under llama.cpp's names.
nlohmann::ordered_json props_body(const ServeContext& context);

// Seconds since 1970 as "2026-11-26T12:00:00Z".
std::string utc_time(int64_t seconds);

// GET /slots: one entry for each sequence that may run at once; those that run come first.
nlohmann::ordered_json slots_body(const ServeContext& context);

// The answer of POST /api/show: llama.cpp's, which clients of Ollama read.
nlohmann::ordered_json api_show_body(const ServeContext& context);

// The entry of a model in the list of /api/tags, as they do.
nlohmann::ordered_json ollama_model(const ServeContext& context, const std::string& name);

// The entry of a model in the list of LM Studio's /api/v0/models.
nlohmann::ordered_json lmstudio_model(const ServeContext& context, const std::string& name);

// The same in that of its newer /api/v1/models, where it is loaded.
nlohmann::ordered_json lmstudio_key(const ServeContext& context, const std::string& name);

}  // namespace foretoken
