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

TEST(JsonFile, ReadsAList) {
  const test::ScratchFolder folder;
  const auto list = read_json_list(folder.write("x.json", R"([{"a": 1}, NaN, 3])"));
  ASSERT_TRUE(list.ok()) << list.status().message();
  EXPECT_EQ(list.value().size(), 3u);
  for (const char* text : {"{}", "[", "[1], \"b\": [2]", ""}) {
    const auto other = read_json_list(folder.write("x.json", text));
    EXPECT_EQ(other.status().code(), StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(read_json_list("/nonexistent/modules.json").status().code(), StatusCode::kNotFound);
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
