#include "model/json_file.h"

#include <gtest/gtest.h>

#include "model/scratch_folder.h"

namespace foretoken {
namespace {

TEST(JsonFile, ReadsAnObject) {
  const test::ScratchFolder folder;
  const auto json = read_json_file(folder.write("x.json", R"({"a": {"b": 1}, "c": {"b": 2}})"));
  ASSERT_TRUE(json.ok()) << json.status().message();
  EXPECT_EQ(json.value()["c"]["b"], 2);
}

TEST(JsonFile, MissingFileIsNotFound) {
  const auto json = read_json_file("/nonexistent/config.json");
  ASSERT_FALSE(json.ok());
  EXPECT_EQ(json.status().code(), StatusCode::kNotFound);
  EXPECT_NE(json.status().message().find("/nonexistent/config.json"), std::string::npos);
}

TEST(JsonFile, BadTextIsNamed) {
  for (const char* text : {"", "{", "[]", "3", R"({"a":1,"a":2})", "{\"a\":\xff}"}) {
    const auto json = parse_json_object(text, "config.json");
    ASSERT_FALSE(json.ok()) << text;
    EXPECT_EQ(json.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(json.status().message().rfind("config.json: ", 0), 0u) << json.status().message();
  }
}

TEST(JsonFile, DeepNestingIsRefusedBeforeAnyoneRecursesIntoIt) {
  const std::string deep(100000, '[');
  const auto result = parse_json_object("{\"a\":" + deep + std::string(100000, ']') + "}", "text");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("deeper than 128"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
