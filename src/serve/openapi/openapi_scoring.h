#pragma once
#include <nlohmann/json.hpp>

#include "serve/openapi/openapi_fields.h"

namespace foretoken {

// Schemas of the bodies and answers of scores, rankings, pooling and llama.cpp's own endpoints, by
// name.
nlohmann::ordered_json openapi_more_parts(const OpenApiFacts& facts);

}  // namespace foretoken
