#pragma once
#include <vector>

#include "http/exchange.h"
#include "serve/serve_context.h"

namespace foretoken {

// The server's table. `context` outlives it.
std::vector<http::Route> api_routes(ServeContext& context);

}  // namespace foretoken
