#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foretoken {

// parse_json_object (base/files/json_object.h) for files that Python may have written: the numbers
// that JSON has no words for (NaN, Infinity, -Infinity) are read as json.dump writes them
// and as transformers does from version 5 on ({"__float__": "Infinity"}), wherever they stand.
Result<nlohmann::json> parse_python_json_object(std::string_view text, const std::string& what);
// The same with members in the order of the text.
Result<nlohmann::ordered_json> parse_ordered_python_json_object(std::string_view text,
                                                                const std::string& what);

// A value for messages, those numbers included.
std::string python_json_text(const nlohmann::json& value);

}  // namespace foretoken
