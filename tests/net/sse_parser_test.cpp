#include "net/sse_parser.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace foretoken::net {
namespace {

using Events = std::vector<std::pair<std::string, std::string>>;

// The events of `pieces`, one after another.
Events events_of(const std::vector<std::string>& pieces, bool finish = false) {
  SseParser parser;
  Events events;
  const auto take = [&](std::string_view name, std::string_view data) {
    events.emplace_back(name, data);
  };
  for (const std::string& piece : pieces) EXPECT_TRUE(parser.feed(piece, take).ok());
  if (finish) {
    EXPECT_TRUE(parser.finish(take).ok());
  }
  return events;
}

const char* const kStream =
    "\xEF\xBB\xBF: a comment\n"
    "data: {\"a\": 1}\n\n"
    "event: token\r\ndata: first\r\ndata:second\r\nid: 7\r\n\r\n"
    "data: \xC3\xA4\xE2\x80\xA8 end\r\r"
    "event: lost\n\n"
    "data\n\n"
    "data: [DONE]\n\n";

const Events kEvents = {{"", "{\"a\": 1}"},
                        {"token", "first\nsecond"},
                        {"", "\xC3\xA4\xE2\x80\xA8 end"},
                        {"", ""},
                        {"", "[DONE]"}};

TEST(SseParser, ReadsFieldsLineEndsAndComments) { EXPECT_EQ(events_of({kStream}), kEvents); }

TEST(SseParser, NoCutChangesTheEvents) {
  const std::string stream = kStream;
  for (size_t cut = 0; cut <= stream.size(); ++cut) {
    EXPECT_EQ(events_of({stream.substr(0, cut), stream.substr(cut)}), kEvents) << cut;
  }
  std::vector<std::string> bytes;
  for (const char c : stream) bytes.emplace_back(1, c);
  EXPECT_EQ(events_of(bytes), kEvents);
}

TEST(SseParser, AnEventComesWithItsBlankLineAndNotLater) {
  SseParser parser;
  int count = 0;
  const auto take = [&](std::string_view, std::string_view) { ++count; };
  ASSERT_TRUE(parser.feed("data: x\n", take).ok());
  EXPECT_EQ(count, 0);
  ASSERT_TRUE(parser.feed("\n", take).ok());
  EXPECT_EQ(count, 1);
  ASSERT_TRUE(parser.feed("data: y\r\n\r", take).ok());
  EXPECT_EQ(count, 2) << "a CR ends its line at once";
}

TEST(SseParser, TheLastEventMayLackItsBlankLine) {
  EXPECT_EQ(events_of({"data: x"}), Events());
  EXPECT_EQ(events_of({"data: x"}, true), (Events{{"", "x"}}));
  EXPECT_EQ(events_of({"data: x\n\n"}, true), (Events{{"", "x"}}));
}

TEST(SseParser, AnEndlessEventIsAnError) {
  SseParser lines(100);
  const auto ignore = [](std::string_view, std::string_view) {};
  EXPECT_FALSE(lines.feed(std::string(101, 'x'), ignore).ok());
  SseParser data(100);
  Status status;
  for (int i = 0; i < 20 && status.ok(); ++i) status = data.feed("data: 0123456789\n", ignore);
  EXPECT_NE(status.message().find("longer than 100 bytes"), std::string::npos);
}

}  // namespace
}  // namespace foretoken::net
