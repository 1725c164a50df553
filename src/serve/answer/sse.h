#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "http/message/exchange.h"

namespace foretoken {

// "data: {...}\n\n".
std::string sse_data(const nlohmann::ordered_json& value);
// "event: name\ndata: {...}\n\n".
std::string sse_event(const std::string& name, const nlohmann::ordered_json& value);
// "data: [DONE]\n\n".
std::string sse_done();

// Begins an answer of events, with `more` headers behind those that keep proxies from holding them
// back.
void begin_events(http::Exchange& exchange, const http::Headers& more);
// The same for an answer of JSON lines ("application/x-ndjson").
void begin_lines(http::Exchange& exchange, const http::Headers& more);

}  // namespace foretoken
