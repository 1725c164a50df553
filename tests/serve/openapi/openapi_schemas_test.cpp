#include "serve/openapi/openapi_schemas.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

TEST(OpenApiSchemas, EachIsASchema) {
  const nlohmann::ordered_json parts = openapi_parts({});
  EXPECT_GT(parts.size(), 25u);
  for (const auto& [name, schema] : parts.items()) {
    EXPECT_TRUE(schema.contains("type") || schema.contains("anyOf") || schema.contains("enum"))
        << name;
  }
}

TEST(OpenApiSchemas, ToolsAreAddedByNameOrDefinition) {
  const json tool = openapi_parts({})["ChangeBlock"]["properties"]["tool"];
  ASSERT_EQ(tool["anyOf"].size(), 2u);
  EXPECT_EQ(tool["anyOf"][0]["required"], json::array({"name"}));
  EXPECT_EQ(tool["anyOf"][1]["required"], json::array({"definition"}));
}

TEST(OpenApiSchemas, InstructionsStandInMessagesOfUserAndSystem) {
  const json parts = openapi_parts({});
  EXPECT_EQ(parts["SystemBlock"]["properties"]["type"]["const"], "mid_conv_system");
  const json block = {{"$ref", "#/components/schemas/SystemBlock"}};
  const json& messages = parts["AnthropicMessage"]["anyOf"];
  const json& of_user = messages[1]["properties"]["content"]["items"]["anyOf"];
  const json& of_system = messages[3]["properties"]["content"]["anyOf"][2]["items"]["anyOf"];
  EXPECT_EQ(std::count(of_user.begin(), of_user.end(), block), 1);
  EXPECT_EQ(std::count(of_system.begin(), of_system.end(), block), 1);
}

TEST(OpenApiSchemas, AnAnswerMayEndWithTheContext) {
  const json parts = openapi_parts({});
  const json& reasons = parts["Message"]["properties"]["stop_reason"]["enum"];
  EXPECT_EQ(std::count(reasons.begin(), reasons.end(), "model_context_window_exceeded"), 1);
}

}  // namespace
}  // namespace foretoken
