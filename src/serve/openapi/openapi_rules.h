#pragma once
#include <nlohmann/json.hpp>

#include "serve/openapi/openapi_fields.h"

namespace foretoken {

// What fields of a body ask of each other, as schemas that all hold at once ("allOf"). Each is a
// choice ("anyOf"), so that a generator can take a branch and fill it in.
nlohmann::ordered_json openapi_rules(ApiBody body, const OpenApiFacts& facts);

}  // namespace foretoken
