#pragma once
#include <nlohmann/json.hpp>

namespace foretoken {

// components.schemas beside the bodies: parts of bodies, and answers.
nlohmann::ordered_json openapi_parts();

}  // namespace foretoken
