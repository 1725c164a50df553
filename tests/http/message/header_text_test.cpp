#include "http/message/header_text.h"

#include <gtest/gtest.h>

namespace foretoken::http {
namespace {

TEST(HttpHeaderText, NamesAreEqualInAnyCase) {
  EXPECT_TRUE(same_name("Content-Type", "content-TYPE"));
  EXPECT_FALSE(same_name("Content-Type", "Content-Typ"));
  EXPECT_FALSE(same_name("a[", "a{"));  // only letters have cases
}

TEST(HttpHeaderText, ListsAreSplitAndTrimmed) {
  EXPECT_EQ(split_list(" a ,b,, c\t"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(split_list(" , ,").empty());
  EXPECT_TRUE(list_has("keep-alive, Close", "close"));
  EXPECT_FALSE(list_has("closed", "close"));
  EXPECT_EQ(trimmed(" \t\r\n"), "");
}

TEST(HttpHeaderText, Utf8RefusesWhatUnicodeRefuses) {
  EXPECT_TRUE(is_utf8("plain \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80"));
  EXPECT_TRUE(is_utf8("\xF4\x8F\xBF\xBF"));  // U+10FFFF
  for (const char* bad : {"\x80", "\xC0\xAF", "\xC3", "\xE0\x80\xAF", "\xED\xA0\x80", "\xE2\x82",
                          "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF8\x88\x80\x80", "\xFF"}) {
    EXPECT_FALSE(is_utf8(bad)) << bad;
  }
}

TEST(HttpHeaderText, NoValueBeginsANewLine) {
  EXPECT_EQ(header_safe("a\r\nSet-Cookie: x\x01\x7f\tb"), "a  Set-Cookie: x  \tb");
}

}  // namespace
}  // namespace foretoken::http
