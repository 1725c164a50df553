#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace foretoken {

// "data: {...}\n\n".
std::string sse_data(const nlohmann::ordered_json& value);
// "event: name\ndata: {...}\n\n".
std::string sse_event(const std::string& name, const nlohmann::ordered_json& value);
// "data: [DONE]\n\n".
std::string sse_done();

}  // namespace foretoken
