#include "serve/openapi/openapi_rules.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

constexpr ApiBody kBodies[] = {kChatBody,  kCompletionBody, kEmbeddingBody, kMessagesBody,
                               kCountBody, kResponsesBody,  kTokenizeBody,  kLlamaBody};

// A rule about a field that a body does not have would hold for nothing.
TEST(OpenApiRules, NameFieldsOfTheirBody) {
  int num_rules = 0;
  for (const ApiBody body : kBodies) {
    const nlohmann::ordered_json fields = openapi_body(body, {})["properties"];
    for (const auto& rule : openapi_rules(body, {})) {
      ++num_rules;
      ASSERT_GE(rule["anyOf"].size(), 2u);
      for (const auto& branch : rule["anyOf"]) {
        for (const auto& [name, schema] : branch["properties"].items()) {
          EXPECT_TRUE(fields.contains(name)) << body << ": " << rule;
        }
      }
    }
  }
  EXPECT_GT(num_rules, 10);
}

TEST(OpenApiRules, ToolsAreFreeWhereCallsAreFound) {
  OpenApiFacts facts;
  const size_t without = openapi_rules(kChatBody, facts).size();
  facts.finds_tool_calls = true;
  EXPECT_EQ(openapi_rules(kChatBody, facts).size(), without - 1);
}

}  // namespace
}  // namespace foretoken
