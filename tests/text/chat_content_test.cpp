#include "text/chat_content.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(ChatContent, TextBecomesOnePart) {
  EXPECT_EQ(
      with_content_format(R"([{"role":"user","content":"Hi"},{"role":"a","content":null}])",
                          ContentFormat::kOpenAi)
          .value(),
      R"([{"role":"user","content":[{"type":"text","text":"Hi"}]},{"role":"a","content":null}])");
}

TEST(ChatContent, PartsBecomeLines) {
  EXPECT_EQ(with_content_format(
                R"([{"z":1,"content":[{"type":"text","text":"a"},"b"],"a":{"y":1,"b":2}}])",
                ContentFormat::kString)
                .value(),
            R"([{"z":1,"content":"a\nb","a":{"y":1,"b":2}}])");
  EXPECT_EQ(with_content_format(R"([{"content":[]},5,{}])", ContentFormat::kString).value(),
            R"([{"content":""},5,{}])");
}

TEST(ChatContent, WhatFitsStaysAsItIs) {
  const std::string parts = R"([{"content":[{"type":"image"}]}])";
  EXPECT_EQ(with_content_format(parts, ContentFormat::kOpenAi).value(), parts);
  const std::string text = R"([{"content":"x"}])";
  EXPECT_EQ(with_content_format(text, ContentFormat::kString).value(), text);
}

TEST(ChatContent, BadInputIsAnErrorWithWords) {
  const auto image =
      with_content_format(R"([{"content":[{"type":"image"}]}])", ContentFormat::kString);
  ASSERT_FALSE(image.ok());
  EXPECT_EQ(image.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(image.status().message().find("not text"), std::string::npos);
  for (const char* broken : {"", "{}", "[", "5"}) {
    EXPECT_FALSE(with_content_format(broken, ContentFormat::kOpenAi).ok());
  }
}

}  // namespace
}  // namespace foretoken
