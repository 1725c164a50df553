#include "chat/calls/parser_table.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(ParserTable, FindsByName) {
  EXPECT_EQ(find_tool_parser("nope"), nullptr);
  EXPECT_EQ(find_reasoning_parser("nope"), nullptr);
  EXPECT_EQ(find_tool_parser("mistral")->id_style, CallIdStyle::kMistral);
  EXPECT_TRUE(find_reasoning_parser("deepseek_r1")->format.always);
  EXPECT_FALSE(find_reasoning_parser("qwen3")->format.always);
}

// The scanners need markers of which none begins another.
TEST(ParserTable, MarkersAreNoBeginningsOfEachOther) {
  for (const std::string& name : reasoning_parser_names()) {
    const ReasoningFormat& format = find_reasoning_parser(name)->format;
    for (const auto* list : {&format.open, &format.close}) {
      for (const std::string& one : *list) {
        for (const std::string& other : *list) {
          EXPECT_TRUE(one == other || !other.starts_with(one)) << one << " and " << other;
        }
      }
    }
  }
  for (const std::string& name : tool_parser_names()) {
    EXPECT_NE(find_tool_parser(name)->make({}), nullptr);
  }
}

}  // namespace
}  // namespace foretoken
