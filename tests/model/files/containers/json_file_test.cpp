#include "model/files/containers/json_file.h"

#include <gtest/gtest.h>

#include "support/scratch_folder.h"

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

TEST(JsonFile, ABrokenFileIsNamedWithTheRemedy) {
  const test::ScratchFolder folder;
  const auto json = read_json_file(folder.write("config.json", "{"));
  ASSERT_FALSE(json.ok());
  EXPECT_EQ(json.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(json.status().message().find("config.json: not valid JSON"), std::string::npos);
  EXPECT_NE(json.status().message().find("write the file again"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
