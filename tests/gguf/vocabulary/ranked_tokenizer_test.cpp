#include "gguf/vocabulary/ranked_tokenizer.h"

#include <gtest/gtest.h>

// tests/text/vocabulary_golden_test.cpp compares the tokens with tiktoken's.

namespace foretoken {
namespace {

TEST(RankedTokenizer, ReadsTiktokenFiles) {
  EXPECT_TRUE(is_tiktoken_file("IQ== 0\nIg== 1\n"));
  EXPECT_FALSE(is_tiktoken_file("version https://git-lfs.github.com/spec/v1\n"));
  EXPECT_FALSE(is_tiktoken_file(""));
  const auto tokens = parse_tiktoken_file("IQ== 0\r\nISE= 1\n\n", "x.tiktoken");
  ASSERT_TRUE(tokens.ok()) << tokens.status().message();
  EXPECT_EQ(tokens.value(), (std::vector<std::string>{"!", "!!"}));
  for (const char* text : {"", "IQ== 1\n", "IQ== 0\nIQ==\n", "IQ== 0\n* 1\n", "IQ== 0x\n"}) {
    const auto broken = parse_tiktoken_file(text, "x.tiktoken");
    ASSERT_FALSE(broken.ok()) << text;
    EXPECT_TRUE(broken.status().message().starts_with("x.tiktoken"));
  }
}

TEST(RankedTokenizer, KnowsFamiliesByTheirSize) {
  const auto llama = find_ranked_form(128000, "tokenizer.model", {}, "x");
  ASSERT_TRUE(llama.ok());
  EXPECT_EQ(llama.value().special.size(), 256u);
  EXPECT_EQ(llama.value().special.back().content, "<|reserved_special_token_247|>");
  EXPECT_EQ(llama.value().special.back().id, 128255);
  EXPECT_EQ(llama.value().before, (TokenNames{{"<|begin_of_text|>", 128000}}));
  const auto qwen = find_ranked_form(151643, "tokenizer.tiktoken", {}, "x");
  ASSERT_TRUE(qwen.ok());
  EXPECT_EQ(qwen.value().special[2].content, "<|im_end|>");
  EXPECT_EQ(qwen.value().special.back().id, 151850);
  EXPECT_TRUE(qwen.value().composes);
  const auto o200k = find_ranked_form(199998, "tokenizer.tiktoken", {}, "x");
  ASSERT_TRUE(o200k.ok());
  EXPECT_EQ(o200k.value().special[0].id, 199999);
  EXPECT_EQ(o200k.value().special[1].id, 200018);
}

TEST(RankedTokenizer, OtherSizesNeedAName) {
  TokenizerSettings settings;
  const auto unknown = find_ranked_form(300, "tokenizer.tiktoken", settings, "x.tiktoken");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(unknown.status().message().find("put a tokenizer.json into the folder"),
            std::string::npos);
  EXPECT_TRUE(find_ranked_form(300, "o200k_base.tiktoken", settings, "x").ok());
  settings.class_name = "ChatGLM4Tokenizer";
  const auto glm = find_ranked_form(300, "tokenizer.model", settings, "x");
  ASSERT_TRUE(glm.ok());
  EXPECT_EQ(glm.value().before, (TokenNames{{"[gMASK]", 302}, {"<sop>", 304}}));
}

TEST(RankedTokenizer, MergesAreInTheOrderOfRanks) {
  RankedForm form;
  form.pattern = ".";
  form.first_id = 10;
  const MadeTokenizer made = ranked_tokenizer({"a", "b", " ", "ab", " a", " ab"}, form, {});
  EXPECT_EQ(made.tokenizer["model"]["merges"],
            nlohmann::json::array({"a b", "Ġ a", "Ġ ab", "Ġa b"}));
  EXPECT_EQ(made.tokenizer["model"]["vocab"]["Ġab"], 15);
}

}  // namespace
}  // namespace foretoken
