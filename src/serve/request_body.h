#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foretoken {

// The JSON object in the body of a request. InvalidArgument names what is wrong: broken JSON or
// UTF-8, another value than an object, values nested deeper than 128 levels, more than four million
// values, or objects with so many members that reading them would take seconds. What is refused for
// its size is refused before it takes memory.
Result<nlohmann::ordered_json> parse_request_body(std::string_view body);

// JSON as text; bytes that are no UTF-8 become U+FFFD.
std::string json_text(const nlohmann::ordered_json& value);

}  // namespace foretoken
