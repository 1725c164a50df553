#include "text/utf8_stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken {
namespace {

std::string stream_pieces(const std::vector<std::string>& pieces) {
  Utf8Stream utf8;
  std::string text;
  for (const std::string& piece : pieces) utf8.push(piece, &text);
  utf8.flush(&text);
  return text;
}

TEST(Utf8Stream, HoldsCharactersBackUntilTheyAreWhole) {
  Utf8Stream utf8;
  std::string text;
  utf8.push("a\xF0\x9F", &text);
  EXPECT_EQ(text, "a");
  utf8.push("\x98", &text);
  EXPECT_EQ(text, "a");
  utf8.push("\x80z", &text);
  EXPECT_EQ(text, "a\xF0\x9F\x98\x80z");
}

// The examples of the Unicode standard, tables 3-8 to 3-11.
TEST(Utf8Stream, ReplacesLongestBeginnings) {
  const std::string mark(kReplacementCharacter);
  const auto times = [&](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += mark;
    return text;
  };
  EXPECT_EQ(stream_pieces({"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82", "A"}), times(8) + "A");
  EXPECT_EQ(stream_pieces({"\xED\xA0\x80\xED\xBF\xBF\xED\xAF", "A"}), times(8) + "A");
  EXPECT_EQ(stream_pieces({"\xF4\x91\x92\x93\xFF", "A", "\x80\xBF", "B"}),
            times(5) + "A" + times(2) + "B");
  EXPECT_EQ(stream_pieces({"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF", "A"}), times(4) + "A");
}

TEST(Utf8Stream, AnIncompleteEndIsOneMark) {
  EXPECT_EQ(stream_pieces({"ab\xE2\x82"}), "ab" + std::string(kReplacementCharacter));
  EXPECT_EQ(stream_pieces({}), "");
}

}  // namespace
}  // namespace foretoken
