#include "chat/calls/call_sink.h"

#include <gtest/gtest.h>

#include <regex>

namespace foretoken {
namespace {

TEST(CallSink, Ids) {
  const std::regex uuid("chatcmpl-tool-[0-9a-f]{32}");
  const std::regex mistral("[0-9A-Za-z]{9}");
  EXPECT_TRUE(std::regex_match(make_tool_call_id(CallIdStyle::kUuid), uuid));
  EXPECT_TRUE(std::regex_match(make_tool_call_id(CallIdStyle::kMistral), mistral));
  EXPECT_NE(make_tool_call_id(CallIdStyle::kUuid), make_tool_call_id(CallIdStyle::kUuid));
}

TEST(CallSink, NeighboursOfOneKindAreOnePiece) {
  CallSink sink({});
  sink.content("a");
  sink.content("b");
  sink.begin_call("f");
  sink.arguments("{");
  sink.arguments("}");
  sink.begin_call("g");
  sink.content(" ");
  const std::vector<ChatPiece> pieces = sink.take();
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_EQ(pieces[0].text, "ab");
  EXPECT_EQ(pieces[1].text, "{}");
  EXPECT_EQ(pieces[2].call_name, "g");
  EXPECT_EQ(pieces[2].call_index, 1);
  EXPECT_EQ(pieces[2].text, "{}");
  EXPECT_EQ(pieces[3].text, " ");
  EXPECT_TRUE(sink.take().empty());
}

TEST(CallSink, SpaceBesideCalls) {
  CallSink::Options options;
  options.drop_space = true;
  CallSink sink(options);
  sink.content("\n");
  EXPECT_TRUE(sink.take().empty());
  sink.content("a ");
  EXPECT_EQ(sink.take()[0].text, "\na ");
  sink.begin_call("f");
  sink.content(" ");
  sink.finish();
  EXPECT_EQ(sink.take().size(), 1u);
  CallSink only_space(options);
  only_space.content(" ");
  only_space.finish();
  EXPECT_EQ(only_space.take()[0].text, " ");
}

TEST(CallSink, ArgumentsAreClosed) {
  CallSink sink({});
  sink.begin_call("f", "id");
  sink.arguments("{\"a\": [\"x");
  sink.end_call();
  sink.arguments("more");
  const std::vector<ChatPiece> pieces = sink.take();
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].call_id, "id");
  EXPECT_EQ(pieces[0].text, "{\"a\": [\"x\"]}");
}

}  // namespace
}  // namespace foretoken
