#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foretoken {

// Parses `text`, which must be one JSON object without repeated keys at its top level and without
// values nested deeper than 128 levels. InvalidArgument begins with `what` (a file, an option or a
// part of one) and tells line and column of broken JSON.
Result<nlohmann::json> parse_json_object(std::string_view text, const std::string& what);

}  // namespace foretoken
