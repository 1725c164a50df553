#include "engine/request/parameters/bad_words.h"

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

TEST_F(BadWords, AreEncodedBareAndBehindASpace) {
  for (const std::string word : {"the", "house", "and then", "zqx"}) {
    std::vector<int32_t> expected;
    append(encode(word), expected);
    append(encode(" " + word), expected);
    EXPECT_EQ(bad_word_ids({word}, *tokenizer_, 2048).value(), expected) << word;
    EXPECT_EQ(bad_word_ids({"  " + word}, *tokenizer_, 2048).value(), expected) << word;
  }
  // " the" is a token of its own, and so is " upon", which has two without the space.
  EXPECT_EQ(bad_word_ids({"the"}, *tokenizer_, 2048).value().size(), 4u);
  EXPECT_EQ(encode("upon").size(), 2u);
  EXPECT_EQ(encode(" upon").size(), 1u);
}

TEST_F(BadWords, WhatEndsWithTheBareWordNeedsNoSecondSequence) {
  std::vector<int32_t> expected;
  append(encode("1"), expected);
  EXPECT_EQ(encode(" 1").size(), 2u);
  EXPECT_EQ(bad_word_ids({"1"}, *tokenizer_, 2048).value(), expected);
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
