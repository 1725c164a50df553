#include "gguf/vocabulary/tokenizer_build.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(TokenizerBuild, Base64) {
  for (const std::string bytes : {"", "a", "ab", "abc", "abcd"}) {
    EXPECT_EQ(decode_base64(encode_base64(bytes)), bytes);
  }
  EXPECT_EQ(encode_base64("\xff\xfe"), "//4=");
  EXPECT_EQ(decode_base64("//4"), "\xff\xfe");
  EXPECT_EQ(decode_base64("a"), std::nullopt);
  EXPECT_EQ(decode_base64("ab c"), std::nullopt);
}

TEST(TokenizerBuild, BytesAsCharacters) {
  EXPECT_EQ(byte_level_text("a b\n"), "aĠbĊ");
  EXPECT_EQ(byte_level_text(std::string("\0\xad\xff", 3)), "ĀŃÿ");
}

TEST(TokenizerBuild, AddedTokensStandByTheirIds) {
  const auto list = added_tokens_json({{7, "b"}, {3, "a", false}});
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["content"], "a");
  EXPECT_EQ(list[0]["special"], false);
  EXPECT_EQ(list[1]["special"], true);
}

TEST(TokenizerBuild, TokensAroundATextAreAPostProcessor) {
  EXPECT_TRUE(around_text_json({}, {}).is_null());
  const auto post = around_text_json({{"<s>", 1}}, {{"</s>", 2}});
  EXPECT_EQ(post["single"].size(), 3u);
  EXPECT_EQ(post["special_tokens"]["</s>"]["ids"][0], 2);
}

}  // namespace
}  // namespace foretoken
