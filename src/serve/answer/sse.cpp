#include "serve/answer/sse.h"

#include "serve/fields/request_body.h"

namespace foretoken {

std::string sse_data(const nlohmann::ordered_json& value) {
  return "data: " + json_text(value) + "\n\n";
}

std::string sse_event(const std::string& name, const nlohmann::ordered_json& value) {
  return "event: " + name + "\n" + sse_data(value);
}

std::string sse_done() { return "data: [DONE]\n\n"; }

}  // namespace foretoken
