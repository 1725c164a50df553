#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foretoken {

// Parses `text`: one JSON value without values nested deeper than 128 levels and, when it is an
// object, without repeated keys at its top level. Keys stay in the order of the text, for values
// that are printed again. InvalidArgument begins with `what` (a file, an option or a part of one)
// and tells line and column of broken JSON.
Result<nlohmann::ordered_json> parse_ordered_json(std::string_view text, const std::string& what);

// The same for text that must be a JSON object.
Result<nlohmann::ordered_json> parse_ordered_json_object(std::string_view text,
                                                         const std::string& what);
Result<nlohmann::json> parse_json_object(std::string_view text, const std::string& what);

// Of texts that need not be JSON: discarded (is_discarded) where they are none, or nested deeper
// than those levels, which would overflow the stack of whoever copies or prints the value.
nlohmann::json parsed_json(std::string_view text);
nlohmann::ordered_json parsed_ordered_json(std::string_view text);

}  // namespace foretoken
