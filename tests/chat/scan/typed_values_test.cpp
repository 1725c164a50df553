#include "chat/scan/typed_values.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

TEST(TypedValues, FollowTheirSchemas) {
  EXPECT_EQ(typed_value("5", nullptr), "\"5\"");
  EXPECT_EQ(typed_value("5", json::parse(R"({"type": "string"})")), "\"5\"");
  EXPECT_EQ(typed_value("5", json::parse(R"({"type": "number"})")), "5");
  EXPECT_EQ(typed_value("5", json::parse(R"({"anyOf": [{"type": "string"}, {"type": "null"}]})")),
            "\"5\"");
  EXPECT_EQ(typed_value("None", json::parse(R"({"type": ["integer", "null"]})")), "null");
  EXPECT_EQ(typed_value("2", json::parse(R"({"enum": [1, 2]})")), "2");
  EXPECT_EQ(typed_value("a\"b", json::parse(R"({"enum": ["a\"b"]})")), "\"a\\\"b\"");
  EXPECT_EQ(typed_value("[1, \"x\"]", json::parse(R"({"type": "array"})")), "[1,\"x\"]");
}

TEST(TypedValues, PartsOfTexts) {
  EXPECT_EQ(json_string_part("a\"\\\nb"), "a\\\"\\\\\\nb");
  EXPECT_TRUE(is_text_only(nullptr));
  EXPECT_EQ(allowed_types(json::parse(R"({"oneOf": [{"type": "null"}, {"enum": [1]}]})")),
            (std::set<std::string>{"integer", "null"}));
}

TEST(TypedValues, ReferencesLeadToWhatTheyName) {
  const json root = json::parse(R"({"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"type": "array"},
      "C": {"$ref": "#/$defs/C"}}})");
  const auto types = [&](const char* schema) {
    return allowed_types(followed_schema(json::parse(schema), root));
  };
  EXPECT_EQ(types(R"({"$ref": "#/$defs/A"})"), std::set<std::string>{"array"});
  EXPECT_EQ(types(R"({"allOf": [{"$ref": "#/$defs/B"}]})"), std::set<std::string>{"array"});
  for (const char* lost : {R"({"$ref": "#/$defs/C"})", R"({"$ref": "#/$defs/no"})", "true",
                           R"({"$ref": "#/~"})", R"({"$ref": "http://a/b"})"}) {
    EXPECT_TRUE(types(lost).empty()) << lost;
  }
}

}  // namespace
}  // namespace foretoken
