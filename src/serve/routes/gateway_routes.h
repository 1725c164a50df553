#pragma once
#include <vector>

#include "http/message/exchange.h"
#include "serve/flow/serve_context.h"

namespace foretoken {

// Paths by which gateways, orchestrators and clients of other services ask for what `routes`, the
// server's own, answer: Azure's deployments and /openai/v1, KServe's /v2, Cohere's /v2/embed,
// Mistral's /v1/fim/completions, vLLM's /inference/v1/generate, SGLang's loads. The context
// outlives them.
std::vector<http::Route> gateway_routes(ServeContext& context,
                                        const std::vector<http::Route>& routes);

}  // namespace foretoken
