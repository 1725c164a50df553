#pragma once
#include <foretoken/engine.h>

#include <string_view>

#include "http/message/exchange.h"

namespace foretoken {

// The header by which an answer tells a gateway the load (ORCA's endpoint-load-metrics), in the
// format that the request's endpoint-load-metrics-format names: TEXT or JSON, in any case. Has
// vLLM's two measures; none for another format.
http::Headers load_report(std::string_view format, const EngineStats& stats);

}  // namespace foretoken
