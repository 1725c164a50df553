#pragma once
#include <span>
#include <string>
#include <vector>

#include "config/api_body.h"

namespace foretoken {

// A field of one or more bodies. Bodies in which a name means different things have an entry each.
struct ApiField {
  const char* name;
  unsigned bodies;
  std::string schema;  // JSON schema; every field may be null, too
};

// What /openapi.json says of requests, and what is carried from one API to another, in the order
// of the document. Fields of sampling come from their table (config/sampling_fields.h).
std::span<const ApiField> api_fields();

// Names that mean the same in the bodies `from` and `to`.
std::vector<const char*> shared_fields(ApiBody from, ApiBody to);

}  // namespace foretoken
