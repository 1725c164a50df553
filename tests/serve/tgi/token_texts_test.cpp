#include "serve/tgi/token_texts.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

constexpr int32_t kEndMark = 2;

struct Token {
  int32_t id;
  const char* text;
  const char* bytes = "";
};

RequestOutput news_of(const char* text, const std::vector<Token>& tokens, bool finished = false) {
  RequestOutput news;
  news.text = text;
  news.finished = finished;
  for (const Token& token : tokens) {
    Logprob told{token.id, -0.5f, 1, token.text};
    told.bytes = token.bytes;
    news.logprobs.push_back({told, {}});
  }
  return news;
}

TokenTexts texts_of(bool keeps_special = false) {
  return {[](int32_t id) { return id == kEndMark; }, keeps_special};
}

using Texts = std::vector<std::string>;

Texts all_of(const std::vector<RequestOutput>& all, TokenTexts texts = texts_of()) {
  Texts told;
  for (const RequestOutput& news : all) {
    for (const TokenText& token : texts.take(news)) told.push_back(token.text);
  }
  return told;
}

const std::vector<Token> kUnicorn = {
    {5, "a"},    {6, "", "\xf0"},   {7, "", "\x9f\xa6"}, {8, "\ufffd", "\x84"},
    {9, " cat"}, {kEndMark, "</s>"}};

TEST(TokenTexts, CharactersStandAtTheirLastToken) {
  const Texts wanted = {"a", "", "", "\U0001f984", " cat", "</s>"};
  EXPECT_EQ(wanted, all_of({news_of("a\U0001f984 cat", kUnicorn, true)}));
  std::vector<RequestOutput> stream;
  for (size_t i = 0; i < kUnicorn.size(); ++i) {
    const char* const texts[] = {"a", "", "", "\U0001f984", " cat", ""};
    stream.push_back(news_of(texts[i], {kUnicorn[i]}, i + 1 == kUnicorn.size()));
  }
  EXPECT_EQ(wanted, all_of(stream));
}

TEST(TokenTexts, WaitForTextThatIsHeldBack) {
  TokenTexts texts = texts_of();
  EXPECT_EQ(0u, texts.take(news_of(" ", {{5, " was"}})).size());
  EXPECT_EQ(0u, texts.take(news_of("", {{6, " a"}})).size());
  const std::vector<TokenText> told = texts.take(news_of("was a little", {{7, " little"}}));
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0].text + "|" + told[1].text + "|" + told[2].text, " was| a| little");
  EXPECT_EQ(told[1].position.token.token_id, 6);
}

TEST(TokenTexts, ATextThatIsCutInAToken) {
  EXPECT_EQ((Texts{" was", " a", " l"}),
            all_of({news_of(" was a l", {{5, " was"}, {6, " a"}, {7, " little"}}, true)}));
  EXPECT_EQ((Texts{" was", " "}),
            all_of({news_of(" was ", {{5, " was"}}), news_of("", {{7, " little"}}, true)}));
}

TEST(TokenTexts, ABlankThatTheTextBeginsWithout) {
  EXPECT_EQ((Texts{"Once", " upon"}),
            all_of({news_of("Once upon", {{5, " Once"}, {6, " upon"}}, true)}));
}

TEST(TokenTexts, BytesThatAreNoCharacter) {
  EXPECT_EQ((Texts{"a", "", "\ufffdb", "c"}),
            all_of({news_of("a\ufffd"
                            "bc",
                            {{5, "a"}, {6, "", "\xf0"}, {7, "b"}, {8, "c"}}, true)}));
}

TEST(TokenTexts, SpecialTokensOfATextThatKeepsThem) {
  TokenTexts texts = texts_of(true);
  const std::vector<TokenText> told =
      texts.take(news_of("a</s>", {{5, "a"}, {kEndMark, "</s>"}}, true));
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[1].text, "</s>");
  EXPECT_FALSE(told[1].special);
}

TEST(TokenTexts, TextWithoutTokens) {
  TokenTexts texts = texts_of();
  EXPECT_EQ(0u, texts.take(news_of("x", {}, true)).size());
  EXPECT_EQ("x", texts.trailing_text());
}

}  // namespace
}  // namespace foretoken
