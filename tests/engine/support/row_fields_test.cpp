#include "engine/support/row_fields.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

struct ReadRow {
  std::string text = "as it was";
  int count = 7;
  bool flag = false;
  std::vector<std::string> texts = {"as they were"};

  Status read(const Json& entry) {
    const RowField fields[] = {
        {"text", &text}, {"count", &count, 0}, {"flag", &flag}, {"texts", &texts}};
    return read_row_fields(entry, "line", fields);
  }
};

TEST(RowFields, WhatIsNamedIsReadAndTheRestStays) {
  ReadRow row;
  ASSERT_TRUE(row.read(Json::object()).ok());
  EXPECT_EQ(row.text, "as it was");
  EXPECT_EQ(row.count, 7);
  ASSERT_TRUE(row.read({{"texts", {"a", "b"}}, {"flag", true}, {"count", 0}}).ok());
  EXPECT_EQ(row.texts, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(row.flag);
  EXPECT_EQ(row.count, 0);
  ASSERT_TRUE(row.read({{"texts", "alone"}, {"text", ""}, {"count", 1024}}).ok());
  EXPECT_EQ(row.texts, std::vector<std::string>{"alone"});
  EXPECT_EQ(row.text, "");
  EXPECT_EQ(row.count, 1024);
}

TEST(RowFields, FaultsNameTheField) {
  const std::pair<Json, const char*> cases[] = {
      {Json::array(), "a line is a mapping of names to values"},
      {{{"colour", "red"}}, "line: 'colour' is unknown"},
      {{{"text", 5}}, "line: 'text' must be a text"},
      {{{"count", 1025}}, "line: 'count' must be a whole number of 0 to 1024"},
      {{{"count", -1}}, "line: 'count' must be a whole number of 0 to 1024"},
      {{{"count", 1.5}}, "line: 'count' must be a whole number of 0 to 1024"},
      {{{"flag", "yes"}}, "line: 'flag' must be true or false"},
      {{{"texts", Json::array()}}, "line: 'texts' must be a text or a list of texts"},
      {{{"texts", {1}}}, "line: 'texts' must be a text or a list of texts"}};
  for (const auto& [entry, said] : cases) {
    ReadRow row;
    EXPECT_EQ(row.read(entry).message(), said);
  }
}

}  // namespace
}  // namespace foretoken
