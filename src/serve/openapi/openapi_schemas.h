#pragma once
#include <nlohmann/json.hpp>

#include "serve/openapi/openapi_fields.h"

namespace foretoken {

// components.schemas beside the bodies: parts of bodies, and answers.
nlohmann::ordered_json openapi_parts(const OpenApiFacts& facts);

}  // namespace foretoken
