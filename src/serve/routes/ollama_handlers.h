#pragma once
#include "serve/flow/serve_context.h"

namespace foretoken {

// The version that Ollama's clients are told: the first that had all that is answered here.
inline constexpr const char* kOllamaVersion = "0.12.11";

// POST /api/chat, in Ollama's form, or in OpenAI's where the body has fields of that alone.
Status handle_ollama_chat(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                          const Body& body);
// POST /api/generate.
Status handle_ollama_generate(ServeContext& context,
                              const std::shared_ptr<http::Exchange>& exchange, const Body& body);
// POST /api/embed, and the older POST /api/embeddings with one vector.
Status handle_ollama_embed(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                           const Body& body);
Status handle_ollama_embeddings(ServeContext& context,
                                const std::shared_ptr<http::Exchange>& exchange, const Body& body);
// POST /api/show: what a model is.
Status handle_ollama_show(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                          const Body& body);
// POST /api/pull: a success for a model that is served, which needs no pulling.
Status handle_ollama_pull(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                          const Body& body);
// What would make, copy, push or delete models.
Status refuse_ollama_change(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                            const Body& body);
// GET /api/ps: the models in memory, which are those of the server, for ever.
nlohmann::ordered_json ollama_running_body(const ServeContext& context);

}  // namespace foretoken
