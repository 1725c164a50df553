#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foretoken {

// Parses `text`, which must be a JSON object without repeated keys at its top level.
// InvalidArgument names `what` (a file, or a part of one), the line and column.
Result<nlohmann::json> parse_json_object(std::string_view text, const std::string& what);

// The same for a file. NotFound when it cannot be opened.
Result<nlohmann::json> read_json_file(const std::string& path);

}  // namespace foretoken
