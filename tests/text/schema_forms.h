#pragma once
#include <string>
#include <vector>

#include "text/grammar_rig.h"
#include "text/json_schema.h"

namespace foretoken {

using Strings = std::vector<std::string>;

inline StructuredOutputs form_of_schema(const std::string& schema, bool strict) {
  StructuredOutputs wanted;
  wanted.json = schema;
  wanted.strict_schemas = strict;
  return wanted;
}

// What of a schema is not enforced.
inline Strings left_out(const std::string& schema) {
  const auto relaxed = relax_schema(schema);
  EXPECT_TRUE(relaxed.ok()) << relaxed.status().message();
  return relaxed.ok() ? relaxed.value().left_out : Strings();
}

}  // namespace foretoken
