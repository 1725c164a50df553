#include "chat/scan/json_repair.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace foretoken {
namespace {

std::string repaired(const std::string& text) {
  JsonRepair repair;
  std::string out = repair.feed(text);
  return out + repair.finish();
}

TEST(JsonRepair, WholeObjectsStayAsTheyAre) {
  for (const std::string text :
       {R"({})", R"({"a": [1, {"b": null}], "c": "x\u00e9\n\"", "d": -1.5e3})",
        R"({"😀": "\ud83d\ude00"})"}) {
    EXPECT_EQ(repaired(text), text);
  }
}

TEST(JsonRepair, EveryBeginningIsClosed) {
  const std::string text =
      R"({"a": [1, {"b": null, "e": true}], "cd": "x\u00e9\ud83d\ude00\\ \"", "d": -1.5e+3, "f": []})";
  for (size_t size = 0; size <= text.size(); ++size) {
    const std::string out = repaired(text.substr(0, size));
    EXPECT_TRUE(nlohmann::json::parse(out, nullptr, false).is_object()) << out;
  }
}

TEST(JsonRepair, Cases) {
  EXPECT_EQ(repaired(""), "{}");
  EXPECT_EQ(repaired("[1]"), "{}");
  EXPECT_EQ(repaired(R"({"a": 1, "b)"), R"({"a": 1})");
  EXPECT_EQ(repaired(R"({"a": tru)"), "{}");
  EXPECT_EQ(repaired(R"({"a": 12.)"), R"({"a": 12})");
  EXPECT_EQ(repaired(R"({"a": "x\)"), R"({"a": "x"})");
  EXPECT_EQ(repaired(R"({"a": "\ud83d!", "b": "\ude00"})"), R"({"a": "\ufffd!", "b": "\ufffd"})");
  EXPECT_EQ(repaired(R"({"a": 1 oops})"), R"({"a": 1 })");
  EXPECT_EQ(repaired(R"({"a": 1}} more)"), R"({"a": 1})");
}

}  // namespace
}  // namespace foretoken
