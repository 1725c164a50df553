#include "gguf/vocabulary/encoder_tokenizer.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "gguf/gguf_bytes.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

test::GgufBytes with_tokens(const std::string& kind, std::initializer_list<const char*> tokens,
                            uint64_t more_values) {
  test::GgufBytes bytes(0, 2 + more_values);
  bytes.text_value("tokenizer.ggml.model", kind);
  bytes.key("tokenizer.ggml.tokens", 9).number(uint32_t{8}).number(uint64_t{tokens.size()});
  for (const char* token : tokens) bytes.text(token);
  return bytes;
}

class EncoderTokenizer : public ::testing::Test {
 protected:
  std::unique_ptr<GgufFile> open(test::GgufBytes& bytes) {
    return GgufFile::open(bytes.align().write(folder_.file("v.gguf"))).value();
  }
  const test::ScratchFolder folder_;
};

TEST_F(EncoderTokenizer, PiecesAreMarkedAsInFolders) {
  test::GgufBytes bytes = with_tokens("bert", {"[UNK]", "[CLS]", "[SEP]", "\u2581cat", "s"}, 4);
  bytes.u32_value("tokenizer.ggml.unknown_token_id", 0);
  bytes.u32_value("tokenizer.ggml.bos_token_id", 1);
  bytes.u32_value("tokenizer.ggml.seperator_token_id", 2);
  bytes.bool_value("tokenizer.ggml.normalizer.lowercase", false);
  const auto file = open(bytes);
  const Json made = wordpiece_tokenizer(*file, read_gguf_vocabulary(*file).value()).value();
  EXPECT_EQ(made["model"]["vocab"]["cat"], 3);
  EXPECT_EQ(made["model"]["vocab"]["##s"], 4);
  EXPECT_EQ(made["model"]["unk_token"], "[UNK]");
  EXPECT_EQ(made["normalizer"]["lowercase"], false);
  EXPECT_EQ(made["post_processor"]["special_tokens"]["[SEP]"]["ids"], Json::array({2}));
  EXPECT_EQ(made["added_tokens"].size(), 3u) << "by their roles, as no types are written";
}

TEST_F(EncoderTokenizer, MarksBeyondTheVocabularyAreNamed) {
  test::GgufBytes bytes = with_tokens("bert", {"[UNK]", "\u2581cat"}, 0);
  const auto file = open(bytes);
  const auto made = wordpiece_tokenizer(*file, read_gguf_vocabulary(*file).value());
  EXPECT_NE(made.status().message().find("beyond its 2 tokens"), std::string::npos);
}

TEST_F(EncoderTokenizer, UnigramKeepsScoresAndTheTable) {
  test::GgufBytes bytes = with_tokens("t5", {"<s>", "</s>", "<unk>", "\u2581a"}, 5);
  bytes.key("tokenizer.ggml.scores", 9).number(uint32_t{6}).number(uint64_t{4});
  for (const float score : {0.0F, 0.0F, 0.0F, -1.5F}) bytes.number(score);
  bytes.key("tokenizer.ggml.precompiled_charsmap", 9).number(uint32_t{0}).number(uint64_t{3});
  for (const uint8_t byte : {1, 2, 255}) bytes.number(byte);
  bytes.u32_value("tokenizer.ggml.bos_token_id", 0).u32_value("tokenizer.ggml.eos_token_id", 1);
  bytes.u32_value("tokenizer.ggml.unknown_token_id", 2);
  const auto file = open(bytes);
  const Json made = unigram_tokenizer(*file, read_gguf_vocabulary(*file).value()).value();
  EXPECT_EQ(made["model"]["vocab"][3], Json::array({"\u2581a", -1.5}));
  EXPECT_EQ(made["model"]["unk_id"], 2);
  EXPECT_EQ(made["normalizer"]["precompiled_charsmap"], "AQL/");
  EXPECT_EQ(made["post_processor"]["pair"].size(), 6u) << "two marks between the texts of a pair";
}

TEST_F(EncoderTokenizer, MarksBetweenPairs) {
  const auto marks = [this](const char* kind, const char* pre, std::optional<bool> says) {
    test::GgufBytes bytes(0, says ? 3 : 2);
    bytes.text_value("tokenizer.ggml.model", kind).text_value("tokenizer.ggml.pre", pre);
    if (says) bytes.bool_value("tokenizer.ggml.add_sep_token", *says);
    return gguf_pair_marks(*open(bytes)).value();
  };
  EXPECT_EQ(marks("bert", "bert-bge", std::nullopt), 1);
  EXPECT_EQ(marks("bert", "bert-bge", true), 1);
  EXPECT_EQ(marks("t5", "default", std::nullopt), 2);
  EXPECT_EQ(marks("t5", "default", false), 1);
  EXPECT_EQ(marks("gpt2", "roberta-bpe", std::nullopt), 2);
  EXPECT_EQ(marks("gpt2", "llama-bpe", std::nullopt), 1);
}

}  // namespace
}  // namespace foretoken
