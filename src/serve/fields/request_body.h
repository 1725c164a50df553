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

// InvalidArgument where `count` requests, each with a copy of what `body` holds beside the field
// `list`, would take more than 256 MiB.
Status check_copies(const nlohmann::ordered_json& body, const std::string& list, size_t count);

// JSON as text; bytes that are no UTF-8 become U+FFFD.
std::string json_text(const nlohmann::ordered_json& value);

}  // namespace foretoken
