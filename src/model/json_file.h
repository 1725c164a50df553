#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "base/json_object.h"
#include "base/result.h"

namespace foretoken {

// Parses a file that holds one JSON object (base/json_object.h). NotFound when it cannot be opened.
Result<nlohmann::json> read_json_file(const std::string& path);

}  // namespace foretoken
