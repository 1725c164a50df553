#include "text/chat_words.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

TEST(ChatWords, RolesAndCalls) {
  json message = json::parse(R"({"role": "developer", "tool_calls": [{"function": {"name": "f"}},
                                 {"name": "g"}, 5]})");
  EXPECT_EQ(role_of(message), "developer");
  EXPECT_TRUE(is_instruction(message));
  ASSERT_NE(calls_of(message), nullptr);
  EXPECT_EQ(text_at(*function_of((*calls_of(message))[0]), "name"), "f");
  EXPECT_EQ(text_at(*function_of((*calls_of(message))[1]), "name"), "g");
  EXPECT_EQ(function_of((*calls_of(message))[2]), nullptr);
  for (const char* none : {"5", "{}", R"({"tool_calls": null})", R"({"tool_calls": []})"}) {
    json other = json::parse(none);
    EXPECT_EQ(calls_of(other), nullptr) << none;
    EXPECT_EQ(role_of(other), "");
    EXPECT_FALSE(is_instruction(other));
  }
}

TEST(ChatWords, TextsOfContents) {
  const json parts = json::parse(R"([{"type": "text", "text": "a"}, "b"])");
  EXPECT_EQ(joined_text(parts).value(), "a\nb");
  EXPECT_EQ(joined_text("x").value(), "x");
  EXPECT_EQ(joined_text(nullptr).value(), "");
  const json picture = json::parse(R"([{"type": "image"}, {"type": "text", "text": "a"}])");
  EXPECT_NE(joined_text(picture).status().message().find("not text"), std::string::npos);
  EXPECT_EQ(texts_of(picture), "a");
  EXPECT_EQ(texts_of(parts), "a\nb");
}

}  // namespace
}  // namespace foretoken
