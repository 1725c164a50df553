#pragma once
#include <nlohmann/json.hpp>

namespace foretoken {

// The OpenAPI 3.1 document of the server: every endpoint with the fields, types and ranges of its
// body and its answers. `tokenizer_info`: /tokenizer_info is served.
nlohmann::ordered_json openapi_document(bool tokenizer_info);

}  // namespace foretoken
