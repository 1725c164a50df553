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

void begin_events(http::Exchange& exchange, const http::Headers& more) {
  // nginx keeps events back without the second.
  http::Headers headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  headers.insert(headers.end(), more.begin(), more.end());
  exchange.begin(200, "text/event-stream; charset=utf-8", std::move(headers));
}

}  // namespace foretoken
