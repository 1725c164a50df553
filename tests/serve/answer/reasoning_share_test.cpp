#include "serve/answer/reasoning_share.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace foretoken {
namespace {

using Kind = ChatPiece::Kind;

ChatPiece piece(Kind kind, std::string text, std::string call_name = "") {
  ChatPiece made;
  made.kind = kind;
  made.text = std::move(text);
  made.call_name = std::move(call_name);
  return made;
}

TEST(ReasoningShare, CountsBytesOfEveryKind) {
  ReasoningShare share;
  EXPECT_EQ(share.tokens_of(10), 0);
  share.add({piece(Kind::kReasoning, "hmmm")});
  EXPECT_EQ(share.tokens_of(3), 3);
  share.add({piece(Kind::kContent, "Ye"), piece(Kind::kToolCall, "", "f")});
  share.add({piece(Kind::kToolCall, "{")});
  EXPECT_EQ(share.tokens_of(10), 5);
}

TEST(ReasoningShare, NothingButContentIsNone) {
  ReasoningShare share;
  share.add({piece(Kind::kContent, "Yes.")});
  EXPECT_EQ(share.tokens_of(4), 0);
}

}  // namespace
}  // namespace foretoken
