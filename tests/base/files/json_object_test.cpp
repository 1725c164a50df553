#include "base/files/json_object.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(JsonObject, IsParsed) {
  const auto json = parse_json_object(R"({"a": {"b": 1}, "c": {"b": 2}})", "text");
  ASSERT_TRUE(json.ok()) << json.status().message();
  EXPECT_EQ(json.value()["c"]["b"], 2);
}

TEST(JsonObject, BadTextIsNamed) {
  for (const char* text : {"", "{", "[]", "3", R"({"a":1,"a":2})", "{\"a\":\xff}", "{} {}"}) {
    const auto json = parse_json_object(text, "config.json");
    ASSERT_FALSE(json.ok()) << text;
    EXPECT_EQ(json.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(json.status().message().rfind("config.json: ", 0), 0u) << json.status().message();
    EXPECT_EQ(json.status().message().find("json.exception"), std::string::npos);
  }
  const std::string twice = parse_json_object(R"({"a":1,"a":2})", "x").status().message();
  EXPECT_NE(twice.find("'a' appears twice"), std::string::npos) << twice;
}

// As Compose files and the like hand them over; of a file's text they are faults.
TEST(JsonObject, QuotesAroundAnOptionsValueAreTakenOff) {
  EXPECT_EQ(parse_json_object("'{\"a\": \"'\"}'", "--hf-overrides").value()["a"], "'");
  EXPECT_EQ(parse_ordered_json("'[1, 2]'", "--option").value().size(), 2u);
  for (const char* text : {"'{\"a\": 1}", "'1'", "''", "'{'", "''{}''"}) {
    EXPECT_FALSE(parse_ordered_json(text, "--option").ok()) << text;
  }
  EXPECT_FALSE(parse_json_object("'{\"a\": 1}'", "config.json").ok());
}

TEST(JsonObject, DeepNestingIsRefusedBeforeAnyoneRecursesIntoIt) {
  const std::string deep(100000, '[');
  const auto result = parse_json_object("{\"a\":" + deep + std::string(100000, ']') + "}", "text");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("deeper than 128"), std::string::npos);
}

TEST(JsonObject, TextsThatNeedNotBeJsonAreDiscarded) {
  EXPECT_EQ(parsed_json("{\"a\": 1, \"a\": 2}")["a"], 2);
  EXPECT_EQ(parsed_ordered_json(" [1] ").dump(), "[1]");
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  for (const std::string& text : {std::string("a text"), std::string(), std::string("{\xff}"), deep,
                                  "{\"a\":" + deep + "}"}) {
    EXPECT_TRUE(parsed_json(text).is_discarded());
    EXPECT_TRUE(parsed_ordered_json(text).is_discarded());
  }
}

}  // namespace
}  // namespace foretoken
