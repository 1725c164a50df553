#include "chat/calls/parser_names.h"

#include <gtest/gtest.h>

#include "chat/calls/parser_table.h"

namespace foretoken {
namespace {

TEST(ParserNames, MarksAndCaseMakeNoDifference) {
  EXPECT_EQ(known_tool_parser("Hermes"), "hermes");
  EXPECT_EQ(known_tool_parser("kimi-k2"), "kimi_k2");
  EXPECT_EQ(known_tool_parser("deepseekv31"), "deepseek_v31");
  EXPECT_EQ(known_tool_parser("granite_20b_fc"), "granite-20b-fc");
  EXPECT_EQ(known_reasoning_parser("deepseek-r1"), "deepseek_r1");
  EXPECT_EQ(known_reasoning_parser("gpt-oss"), "gpt_oss");
  EXPECT_EQ(known_tool_parser("AUTO"), "auto");
  EXPECT_EQ(known_reasoning_parser("None"), "none");
}

TEST(ParserNames, NamesOfOtherEngines) {
  EXPECT_EQ(known_tool_parser("qwen25"), "hermes");
  EXPECT_EQ(known_tool_parser("glm"), "glm45");
  EXPECT_EQ(known_reasoning_parser("qwen3-thinking"), "qwen3");
  EXPECT_EQ(known_reasoning_parser("minimax-append-think"), "minimax_m2_append_think");
  EXPECT_EQ(known_tool_parser("my_tool"), "my_tool");
  EXPECT_EQ(known_reasoning_parser(""), "");
}

TEST(ParserNames, OtherNamesMeanSomethingThatExists) {
  for (const auto& [theirs, ours] : other_tool_parsers()) {
    EXPECT_NE(find_tool_parser(ours), nullptr) << ours;
    EXPECT_EQ(known_tool_parser(theirs), ours);
  }
  for (const auto& [theirs, ours] : other_reasoning_parsers()) {
    EXPECT_NE(find_reasoning_parser(ours), nullptr) << ours;
    EXPECT_EQ(known_reasoning_parser(theirs), ours);
  }
}

}  // namespace
}  // namespace foretoken
