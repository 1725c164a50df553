#include "serve/responses/item_settings.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

TEST(ItemSettings, ItemsThatAreNotSaid) {
  for (const char* type : {"additional_tools", "tool_search_output", "configuration_update"}) {
    EXPECT_TRUE(is_setting({{"type", type}})) << type;
  }
  EXPECT_FALSE(is_setting({{"type", "message"}}));
  EXPECT_FALSE(is_setting(json("a")));
}

TEST(ItemSettings, TheLastToolOfANameCounts) {
  json chat = json::parse(R"({"tools": [{"type": "function", "function": {"name": "f"}},
    {"type": "function", "function": {"name": "g"}}]})");
  OfferedTools offered;
  const json items = json::parse(R"([{"type": "message"}, {"type": "additional_tools",
    "role": "developer", "tools": [{"type": "function", "name": "f", "description": "new"}]},
    {"type": "tool_search_output", "tools": [{"type": "custom", "name": "h"}]},
    {"type": "tool_search_output", "tools": null}])");
  ASSERT_TRUE(read_item_tools(items, {}, &chat, &offered).ok());
  std::vector<std::string> names;
  for (const json& tool : chat["tools"]) names.push_back(tool["function"]["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"g", "f", "h"}));
  EXPECT_EQ(chat["tools"][1]["function"]["description"], "new");
  EXPECT_TRUE(offered.contains("h"));
  const json wrong = json::parse(R"([{"type": "additional_tools", "tools": 5}])");
  EXPECT_FALSE(read_item_tools(wrong, {}, &chat, &offered).ok());
}

TEST(ItemSettings, EachHoldsUntilALaterOne) {
  const ItemSettings settings = settings_of(json::parse(R"([
    {"type": "configuration_update", "reasoning": {"effort": "low"}, "text": {"format": 1}},
    {"type": "configuration_update", "reasoning": {"effort": "high"}, "text": null},
    {"type": "message", "reasoning": 5}])"));
  EXPECT_EQ(settings.reasoning["effort"], "high");
  EXPECT_EQ(settings.text["format"], 1);
  EXPECT_TRUE(settings_of(json::array()).text.is_null());
}

TEST(ItemSettings, MembersThatAreLeftOutStay) {
  const ItemSettings settings = settings_of(json::parse(R"([
    {"type": "configuration_update", "text": {"format": 1, "verbosity": "high"}},
    {"type": "configuration_update", "text": {"format": null, "verbosity": "low"}}])"));
  EXPECT_EQ(settings.text, json::parse(R"({"format": 1, "verbosity": "low"})"));
}

}  // namespace
}  // namespace foretoken
