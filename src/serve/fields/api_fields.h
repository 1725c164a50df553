#pragma once
#include <span>
#include <vector>

namespace foretoken {

// Bodies that fields belong to, as bits.
enum ApiBody : unsigned {
  kChatBody = 1,
  kCompletionBody = 2,
  kEmbeddingBody = 4,
  kMessagesBody = 8,
  kCountBody = 16,
  kResponsesBody = 32,
  kTokenizeBody = 64,  // of a chat
  kLlamaBody = 128,    // llama.cpp's /completion
};

// A field of one or more bodies. Bodies in which a name means different things have an entry each.
struct ApiField {
  const char* name;
  unsigned bodies;
  const char* schema;  // JSON schema; every field may be null, too
};

// What /openapi.json says of requests, and what is carried from one API to another, in the order
// of the document.
std::span<const ApiField> api_fields();

// Names that mean the same in the bodies `from` and `to`.
std::vector<const char*> shared_fields(ApiBody from, ApiBody to);

}  // namespace foretoken
