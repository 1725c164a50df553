#include "engine/request/logprob_text.h"

#include <gtest/gtest.h>

#include "engine/dialled_engine.h"

namespace foretoken {
namespace {

TEST(LogprobText, NamesTokensAndCutsTheAlternatives) {
  const auto tokenizer = load_hf_tokenizer(bundled_model_folder());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const int32_t the = tokenizer.value()->encode(" the", false).value().at(0);
  const TopLogprob top[] = {{the, -0.5f}, {300, -1.0f}, {301, -2.0f}};
  const LogprobRow row{{300, -1.0f, 2, 3}, top};
  const TokenLogprobs described = describe_row(row, 2, tokenizer.value().get());
  EXPECT_EQ(described.token.token_id, 300);
  EXPECT_EQ(described.token.rank, 2);
  ASSERT_EQ(described.top.size(), 2u);
  EXPECT_EQ(described.top[0].decoded_token, tokenizer.value()->decode({&the, 1}, false).value());
  EXPECT_EQ(described.top[0].rank, 1);
  EXPECT_EQ(described.top[1].rank, 2);
  EXPECT_EQ(described.top[1].decoded_token, described.token.decoded_token);
  EXPECT_TRUE(describe_row(row, 0, nullptr).top.empty());
  EXPECT_TRUE(describe_row(row, 3, nullptr).token.decoded_token.empty());
}

TEST(LogprobText, APartOfACharacterHasItsBytes) {
  const auto tokenizer = load_hf_tokenizer(bundled_model_folder());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const std::string face = "\xF0\x9F\xA6\x84";
  std::string bytes;
  const auto ids = tokenizer.value()->encode(face, false);
  ASSERT_TRUE(ids.ok());
  for (const int32_t id : ids.value()) {
    const TokenLogprobs described =
        describe_row({{id, -1.0f, 1, 3}, {}}, 0, tokenizer.value().get());
    EXPECT_NE(described.token.decoded_token, described.token.bytes);
    bytes += described.token.bytes;
  }
  EXPECT_EQ(bytes, face);
  const int32_t whole = tokenizer.value()->encode("a", false).value().at(0);
  const TokenLogprobs plain = describe_row({{whole, -1.0f, 1, 3}, {}}, 0, tokenizer.value().get());
  EXPECT_TRUE(plain.token.bytes.empty());
}

}  // namespace
}  // namespace foretoken
