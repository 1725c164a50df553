#include "gguf/vocabulary/tekken_tokenizer.h"

#include <gtest/gtest.h>

// tests/text/vocabulary_golden_test.cpp compares the tokens with mistral-common's.

namespace foretoken {
namespace {

nlohmann::json small_tekken() {
  return {{"config",
           {{"pattern", "."}, {"default_vocab_size", 24}, {"default_num_special_tokens", 22}}},
          {"vocab",
           {{{"rank", 0}, {"token_bytes", "YQ=="}},
            {{"rank", 1}, {"token_bytes", "Yg=="}},
            {{"rank", 2}, {"token_bytes", "YWI="}}}}};
}

TEST(TekkenTokenizer, SpecialTokensComeFirst) {
  const auto made = tekken_tokenizer(small_tekken().dump(), {}, "tekken.json");
  ASSERT_TRUE(made.ok()) << made.status().message();
  const nlohmann::json& vocab = made.value().tokenizer["model"]["vocab"];
  EXPECT_EQ(vocab["<s>"], 1);
  EXPECT_EQ(vocab["[TOOL_CONTENT]"], 19);
  EXPECT_EQ(vocab["<SPECIAL_21>"], 21);
  EXPECT_EQ(vocab["b"], 23);
  // Beyond the size that the configuration takes.
  EXPECT_FALSE(vocab.contains("ab"));
  EXPECT_EQ(made.value().config["eos_token"], "</s>");
}

TEST(TekkenTokenizer, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"/config", "config"},
      {"/config/pattern", "pattern"},
      {"/config/default_vocab_size", "default_vocab_size"},
      {"/config/default_num_special_tokens", "default_num_special_tokens"},
      {"/vocab", "vocab"},
      {"/vocab/0/token_bytes", "vocab"},
      {"/vocab/1/rank", "vocab"},
  };
  for (const auto& [pointer, name] : cases) {
    nlohmann::json file = small_tekken();
    file[nlohmann::json::json_pointer(pointer)] = false;
    const auto made = tekken_tokenizer(file.dump(), {}, "tekken.json");
    ASSERT_FALSE(made.ok()) << pointer;
    EXPECT_TRUE(made.status().message().starts_with("tekken.json: '" + std::string(name) + "'"))
        << made.status().message();
  }
  nlohmann::json file = small_tekken();
  file["special_tokens"] = {{{"rank", 22}, {"token_str", "x"}}};
  EXPECT_FALSE(tekken_tokenizer(file.dump(), {}, "tekken.json").ok());
  EXPECT_FALSE(tekken_tokenizer("{", {}, "tekken.json").ok());
}

}  // namespace
}  // namespace foretoken
