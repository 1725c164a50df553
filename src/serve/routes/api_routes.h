#pragma once
#include <vector>

#include "http/message/exchange.h"
#include "serve/flow/serve_context.h"

namespace foretoken {

// The server's table, as /openapi.json describes it. `context` outlives it.
std::vector<http::Route> api_routes(ServeContext& context);

// What stands beside it: other paths of the same routes, as vLLM, llama-server and SageMaker have
// them, and sentences for what some clients ask for and this server does not have.
std::vector<http::Route> other_routes(ServeContext& context,
                                      const std::vector<http::Route>& routes);

}  // namespace foretoken
