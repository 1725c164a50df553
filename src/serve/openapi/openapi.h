#pragma once
#include <nlohmann/json.hpp>

#include "serve/openapi/openapi_fields.h"

namespace foretoken {

// The OpenAPI 3.1 document of the server: every endpoint with the fields, types and ranges of its
// body and its answers.
nlohmann::ordered_json openapi_document(const OpenApiFacts& facts);

}  // namespace foretoken
