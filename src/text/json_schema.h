#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// What of a JSON schema can be enforced.
struct RelaxedSchema {
  std::string schema;                 // that is enforced entirely
  std::vector<std::string> left_out;  // sentences: "'uniqueItems' at $.tags is not enforced"
};

// InvalidArgument where nothing of the schema can be enforced, where no value fits it, or where it
// is no JSON schema. Takes milliseconds, for hostile texts seconds; schemas of late are remembered.
// Any thread.
Result<RelaxedSchema> relax_schema(const std::string& schema);

}  // namespace foretoken
