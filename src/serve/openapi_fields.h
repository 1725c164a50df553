#pragma once
#include <nlohmann/json.hpp>

namespace foretoken {

// Bodies that fields belong to, as bits.
enum OpenApiBody : unsigned {
  kChatBody = 1,
  kCompletionBody = 2,
  kEmbeddingBody = 4,
  kMessagesBody = 8,
  kCountBody = 16,
  kResponsesBody = 32,
  kTokenizeBody = 64,  // of a chat
};

// {"type": "object", "properties", "required", "additionalProperties": false} of a body.
nlohmann::ordered_json openapi_body(OpenApiBody body);

}  // namespace foretoken
