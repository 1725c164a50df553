#include "base/files/yaml_list.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(YamlList, EntriesKeepTheirTypes) {
  const auto list = parse_yaml_list(
      "# rows\n---\n- row: 3  # the third\n  drafter: eagle\n  share: 0.5\n\n"
      "- row: 4\n  on: true\n  name: 'a # b'\n  quoted: \"5\"\n  modes: [FULL, NONE, 7]\n",
      "rows.yaml");
  ASSERT_TRUE(list.ok()) << list.status().message();
  EXPECT_EQ(list.value().dump(),
            R"([{"row":3,"drafter":"eagle","share":0.5},{"row":4,"on":true,"name":"a # b",)"
            R"("quoted":"5","modes":["FULL","NONE",7]}])");
}

TEST(YamlList, PartsOfALine) {
  EXPECT_EQ(trimmed_line(" \ta b\r"), "a b");
  EXPECT_EQ(trimmed_line(" \r"), "");
  EXPECT_EQ(before_comment("a: 'b # c' # d"), "a: 'b # c' ");
  EXPECT_EQ(before_comment("a#b"), "a#b");
  EXPECT_EQ(before_comment("# all"), "");
}

TEST(YamlList, AnEntryInBracesIsJson) {
  const auto list = parse_yaml_list("- {\"row\": 1, \"tp\": [1, 2]}  # small\n- row: 2\n", "x");
  ASSERT_TRUE(list.ok()) << list.status().message();
  EXPECT_EQ(list.value().dump(), "[{\"row\":1,\"tp\":[1,2]},{\"row\":2}]");
}

TEST(YamlList, DeepValuesInBracesAreRefused) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_FALSE(parse_yaml_list("- {\"row\": " + deep + "}", "x").ok());
  EXPECT_TRUE(parse_yaml_list("- row: [" + deep + "]", "x").value()[0]["row"][0].is_string());
}

TEST(YamlList, JsonIsYaml) {
  EXPECT_EQ(parse_yaml_list(" [{\"row\": 1}]", "x").value().dump(), "[{\"row\":1}]");
  EXPECT_EQ(parse_yaml_list("\xef\xbb\xbf- row: 1", "x").value().dump(), "[{\"row\":1}]");
  EXPECT_TRUE(parse_yaml_list("", "x").value().empty());
  EXPECT_FALSE(parse_yaml_list("[{", "x").ok());
}

TEST(YamlList, FaultsNameTheLine) {
  const struct {
    const char* text;
    const char* said;
  } cases[] = {{"row: 1", "line 1: a list begins with '- name: value'"},
               {"- row: 1\nrow: 2", "line 2: lines of an entry are indented"},
               {"- row: 1\n  row: 2", "line 2: 'row' appears twice"},
               {"\n- row", "line 2: each line must be 'name: value', not 'row'"},
               {"- row:\n    deep: 1", "line 1: 'row' has no value"},
               {"- {row: 1}", "line 1: an entry in braces is one line of JSON"},
               {"- : 1", "line 1: each line must be"},
               {"- row: 1\n  name: \xff", "line 2: the line is not UTF-8"}};
  for (const auto& c : cases) {
    const auto list = parse_yaml_list(c.text, "rows.yaml");
    ASSERT_FALSE(list.ok()) << c.text;
    EXPECT_EQ(list.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(list.status().message().rfind("rows.yaml, ", 0), 0u) << list.status().message();
    EXPECT_NE(list.status().message().find(c.said), std::string::npos) << list.status().message();
  }
}

}  // namespace
}  // namespace foretoken
