#include "engine/request/bad_words.h"

#include <gtest/gtest.h>

#include "engine/dialled_engine.h"

namespace foretoken {
namespace {

class BadWords : public testing::Test {
 protected:
  void SetUp() override {
    auto loaded = load_hf_tokenizer(bundled_model_folder());
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    tokenizer_ = std::move(loaded).value();
  }
  std::vector<int32_t> encode(const std::string& text) const {
    return tokenizer_->encode(text, false).value();
  }
  static void append(const std::vector<int32_t>& ids, std::vector<int32_t>& list) {
    list.push_back(static_cast<int32_t>(ids.size()));
    list.insert(list.end(), ids.begin(), ids.end());
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

// vLLM's rule: bare, and behind a space where that is as long and begins with another id.
TEST_F(BadWords, AreEncodedBareAndBehindASpace) {
  for (const std::string word : {"the", "house", "and then", "zqx"}) {
    std::vector<int32_t> expected;
    append(encode(word), expected);
    const std::vector<int32_t> spaced = encode(" " + word);
    if (spaced.size() == encode(word).size() && spaced[0] != encode(word)[0]) {
      append(spaced, expected);
    }
    EXPECT_EQ(bad_word_ids({word}, *tokenizer_, 2048).value(), expected) << word;
    EXPECT_EQ(bad_word_ids({"  " + word}, *tokenizer_, 2048).value(), expected) << word;
  }
  // " the" is a token of its own.
  EXPECT_EQ(bad_word_ids({"the"}, *tokenizer_, 2048).value().size(), 4u);
}

TEST_F(BadWords, NameWhatCannotBe) {
  const auto message_of = [&](const std::vector<std::string>& words, int vocab_size) {
    return bad_word_ids(words, *tokenizer_, vocab_size).status().message();
  };
  EXPECT_NE(message_of({"a", " "}, 2048).find("without text"), std::string::npos);
  EXPECT_NE(message_of({""}, 2048).find("without text"), std::string::npos);
  EXPECT_NE(message_of({"house"}, 5).find("vocabulary of 5"), std::string::npos);
  EXPECT_NE(message_of(std::vector<std::string>(2000, "house"), 2048).find("2048"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
