#include "serve/answer/content_blocks.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using Kind = ChatPiece::Kind;

ChatPiece text(Kind kind, const std::string& piece) { return {kind, piece, 0, "", ""}; }

std::string told(const std::vector<BlockStep>& steps) {
  std::string all;
  for (const BlockStep& step : steps) {
    const char* mark = step.kind == BlockStep::Kind::kOpen    ? "<"
                       : step.kind == BlockStep::Kind::kClose ? ">"
                                                              : "";
    all += mark + std::to_string(step.block) + step.text + " ";
  }
  return all;
}

TEST(ContentBlocks, PiecesBecomeBlocksInOrder) {
  ContentBlocks blocks;
  EXPECT_EQ(told(blocks.add({text(Kind::kReasoning, "hm"), text(Kind::kReasoning, "m")})),
            "<0 0hm 0m ");
  EXPECT_EQ(told(blocks.add({text(Kind::kContent, "a")})), ">0 <1 1a ");
  EXPECT_EQ(
      told(blocks.add({{Kind::kToolCall, "", 0, "id0", "f"}, {Kind::kToolCall, "{}", 0, "", ""}})),
      ">1 <2 2{} ");
  EXPECT_EQ(told(blocks.add({{Kind::kToolCall, "[", 1, "id1", "g"}})), ">2 <3 3[ ");
  EXPECT_EQ(told(blocks.finish()), ">3 ");
  EXPECT_EQ(told(blocks.finish()), "");
  ASSERT_EQ(blocks.all().size(), 4u);
  EXPECT_EQ(blocks.all()[0].text, "hmm");
  EXPECT_EQ(blocks.all()[3].call_name, "g");
  EXPECT_EQ(blocks.text_of(Kind::kContent), "a");
}

TEST(ContentBlocks, EmptyPiecesOpenNothingButCalls) {
  ContentBlocks blocks;
  EXPECT_EQ(told(blocks.add({text(Kind::kContent, ""), text(Kind::kReasoning, "")})), "");
  EXPECT_EQ(told(blocks.add({{Kind::kToolCall, "", 0, "id", "f"}})), "<0 ");
}

}  // namespace
}  // namespace foretoken
