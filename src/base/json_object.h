#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foretoken {

// Parses `text`: one JSON value without values nested deeper than 128 levels and, when it is an
// object, without repeated keys at its top level. InvalidArgument begins with `what` (a file, an
// option or a part of one) and tells line and column of broken JSON.
Result<nlohmann::json> parse_json(std::string_view text, const std::string& what);

// The same with the keys of objects in the order of the text, for values that are printed again.
Result<nlohmann::ordered_json> parse_ordered_json(std::string_view text, const std::string& what);

// As parse_json, for text that must be a JSON object.
Result<nlohmann::json> parse_json_object(std::string_view text, const std::string& what);

Result<nlohmann::ordered_json> parse_ordered_json_object(std::string_view text,
                                                         const std::string& what);

}  // namespace foretoken
