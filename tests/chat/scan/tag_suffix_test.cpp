#include "chat/scan/tag_suffix.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

const std::vector<std::string> kNames = {"think", "tool_calls", "tool_call"};

TEST(TagSuffix, IsLeftOutOfTheTagsThatAreNamed) {
  const auto plain = [](const char* text) { return without_suffixes(kNames, text); };
  EXPECT_EQ(plain("a<think:6124c78e>b</think:6124c78e>"), "a<think>b</think>");
  EXPECT_EQ(plain("<tool_calls:x><tool_call:x>f</tool_call:x>"),
            "<tool_calls><tool_call>f</tool_call>");
  EXPECT_EQ(plain("<tool_call>f<tool_calls>"), "<tool_call>f<tool_calls>");
  for (const char* other : {"<other:x>", "<think :x>", "<think:>", "<think:a b>", "<<think", "</",
                            "a < b", "<think:<think", "<thinking:x>"}) {
    EXPECT_EQ(plain(other), other);
  }
  const std::string long_one = "<think:" + std::string(40, 'x') + ">";
  EXPECT_EQ(plain(long_one.c_str()), long_one);
}

TEST(TagSuffix, HoldsBackOnlyWhatMayBecomeATag) {
  TagSuffix suffix(kNames);
  std::string text;
  for (const char byte : std::string("1 < 2 <<tool")) suffix.feed(byte, &text);
  EXPECT_EQ(text, "1 < 2 <");
  EXPECT_EQ(suffix.take_held(), "<tool");
  EXPECT_EQ(suffix.take_held(), "");
}

}  // namespace
}  // namespace foretoken
