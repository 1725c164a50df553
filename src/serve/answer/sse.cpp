#include "serve/answer/sse.h"

#include <utility>

#include "serve/fields/request_body.h"

namespace foretoken {

std::string sse_data(const nlohmann::ordered_json& value) {
  return "data: " + json_text(value) + "\n\n";
}

std::string sse_event(const std::string& name, const nlohmann::ordered_json& value) {
  return "event: " + name + "\n" + sse_data(value);
}

std::string sse_done() { return "data: [DONE]\n\n"; }

namespace {

void begin_pieces(http::Exchange& exchange, const char* type, const http::Headers& more) {
  // nginx keeps pieces back without the second.
  http::Headers headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  headers.insert(headers.end(), more.begin(), more.end());
  exchange.begin(200, type, std::move(headers));
}

}  // namespace

void begin_events(http::Exchange& exchange, const http::Headers& more) {
  begin_pieces(exchange, "text/event-stream; charset=utf-8", more);
}

void begin_lines(http::Exchange& exchange, const http::Headers& more) {
  begin_pieces(exchange, "application/x-ndjson", more);
}

}  // namespace foretoken
