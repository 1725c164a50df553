#include "serve/openapi/openapi_schemas.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(OpenApiSchemas, EachIsASchema) {
  const nlohmann::ordered_json parts = openapi_parts({});
  EXPECT_GT(parts.size(), 25u);
  for (const auto& [name, schema] : parts.items()) {
    EXPECT_TRUE(schema.contains("type") || schema.contains("anyOf") || schema.contains("enum"))
        << name;
  }
}

}  // namespace
}  // namespace foretoken
