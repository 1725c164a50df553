#include "gguf/vocabulary/world_tokenizer.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(WorldTokenizer, ReadsLinesAsPythonWritesThem) {
  const auto tokens = parse_world_file(
      "1 '\\x00' 1\n11 '\\n' 1\n40 \"'\" 1\n256 b'\\xff' 1\n300 '\\u2028' 3\n301 'a b' 3\r\n"
      "302 '\xc3\xa9' 2\n303 '\\xe9' 2\n",
      "file");
  ASSERT_TRUE(tokens.ok()) << tokens.status().message();
  const WorldTokens want = {
      {1, std::string(1, '\0')}, {11, "\n"},   {40, "'"},         {256, "\xff"},
      {300, "\xe2\x80\xa8"},     {301, "a b"}, {302, "\xc3\xa9"}, {303, "\xc3\xa9"}};
  EXPECT_EQ(tokens.value(), want);
}

TEST(WorldTokenizer, NamesLinesThatAreNone) {
  for (const char* line : {"1 'a' 2", "'a' 1", "1 a 1", "1 'a'", "1 '\\q' 2", "-1 'a' 1"}) {
    const auto tokens = parse_world_file(std::string("1 'b' 1\n") + line + "\n", "file");
    EXPECT_NE(tokens.status().message().find("file: line 2 is no id"), std::string::npos) << line;
  }
  EXPECT_NE(parse_world_file("", "file").status().message().find("no tokens"), std::string::npos);
}

TEST(WorldTokenizer, TakesTokensOfGgufFiles) {
  const GgufVocabulary vocabulary{{"<s>", "\\n", "it's \\\\", "\\xe2\\x80", "[PAD4]"},
                                  {3, 1, 1, 1, 5}};
  const auto tokens = gguf_world_tokens(vocabulary, "file");
  ASSERT_TRUE(tokens.ok()) << tokens.status().message();
  const WorldTokens want = {{1, "\n"}, {2, "it's \\"}, {3, "\xe2\x80"}};
  EXPECT_EQ(tokens.value(), want);
  const GgufVocabulary broken{{"\\x0"}, {1}};
  EXPECT_NE(gguf_world_tokens(broken, "file").status().message().find("file: token 0"),
            std::string::npos);
}

TEST(WorldTokenizer, MakesWordsOfBytes) {
  const auto made = world_tokenizer({{1, "a"}, {2, " \n"}}, kWorldEnd, {});
  const nlohmann::json want = {{"a", 1}, {"\u0120\u010a", 2}, {kWorldEnd, 0}};
  EXPECT_EQ(made.tokenizer["model"]["vocab"], want);
  EXPECT_EQ(made.tokenizer["added_tokens"][0]["content"], kWorldEnd);
  EXPECT_EQ(made.config["eos_token"], kWorldEnd);
}

}  // namespace
}  // namespace foretoken
