#include "gguf/vocabulary/merges_tokenizer.h"

#include <gtest/gtest.h>

// tests/text/vocabulary_golden_test.cpp compares the tokens with those of transformers.

namespace foretoken {
namespace {

constexpr const char* kVocab = R"({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3})";

TEST(MergesTokenizer, ReadsBothFiles) {
  const auto made = merges_tokenizer(kVocab, "#version: 0.2\r\na b\r\n", {}, "folder");
  ASSERT_TRUE(made.ok()) << made.status().message();
  const nlohmann::json& json = made.value().tokenizer;
  EXPECT_EQ(json["model"]["merges"], nlohmann::json::array({"a b"}));
  EXPECT_EQ(json["added_tokens"].size(), 1u);
  EXPECT_EQ(json["pre_tokenizer"]["type"], "ByteLevel");
  EXPECT_EQ(made.value().config["eos_token"], "<|endoftext|>");
}

// OPT's vocabulary holds it as a word.
TEST(MergesTokenizer, TheEndOfTextIsSpecialWhereARoleHasIt) {
  TokenizerSettings settings;
  settings.roles = {{"bos_token", "ab"}, {"eos_token", "ab"}, {"unk_token", "ab"}};
  const auto added = [&] {
    return merges_tokenizer(kVocab, "a b\n", settings, "x").value().tokenizer["added_tokens"];
  };
  ASSERT_EQ(added().size(), 1u);
  EXPECT_EQ(added()[0]["content"], "ab");
  settings.roles.erase("unk_token");
  EXPECT_EQ(added().size(), 2u);
}

TEST(MergesTokenizer, QwenCutsOtherwise) {
  TokenizerSettings settings;
  settings.model_type = "qwen3";
  EXPECT_EQ(
      merges_tokenizer(kVocab, "a b\n", settings, "x").value().tokenizer["normalizer"]["type"],
      "NFC");
  settings.class_name = "GPT2Tokenizer";
  EXPECT_TRUE(
      merges_tokenizer(kVocab, "a b\n", settings, "x").value().tokenizer["normalizer"].is_null());
}

TEST(MergesTokenizer, BrokenFilesAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "a b"}, {"{}", "a b"}, {R"({"a": "b"})", "a b"}, {R"({"a": -1})", "a b"}};
  for (const auto& [vocab, merges] : cases) {
    EXPECT_NE(merges_tokenizer(vocab, merges, {}, "x").status().message().find("vocab.json"),
              std::string::npos);
  }
  for (const char* merges : {"a", "a b c", " b", "a "}) {
    EXPECT_NE(merges_tokenizer(kVocab, merges, {}, "x").status().message().find("merges.txt"),
              std::string::npos)
        << merges;
  }
}

}  // namespace
}  // namespace foretoken
