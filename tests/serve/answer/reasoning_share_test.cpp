#include "serve/answer/reasoning_share.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using Kind = ChatPiece::Kind;

TEST(ReasoningShare, CountsBytesOfEveryKind) {
  ReasoningShare share;
  EXPECT_EQ(share.tokens_of(10), 0);
  share.add({{Kind::kReasoning, "hmmm"}});
  EXPECT_EQ(share.tokens_of(3), 3);
  share.add({{Kind::kContent, "Ye"}, {Kind::kToolCall, "", 0, "id", "f"}});
  share.add({{Kind::kToolCall, "{", 0}});
  EXPECT_EQ(share.tokens_of(10), 5);
}

TEST(ReasoningShare, NothingButContentIsNone) {
  ReasoningShare share;
  share.add({{Kind::kContent, "Yes."}});
  EXPECT_EQ(share.tokens_of(4), 0);
}

}  // namespace
}  // namespace foretoken
