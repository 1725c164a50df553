#include "gguf/hf_tokenizer.h"

#include <gtest/gtest.h>

#include "gguf/gguf_bytes.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;
using test::GgufBytes;

GgufBytes vocabulary(uint64_t more_values, const std::string& kind) {
  GgufBytes bytes(0, 3 + more_values);
  bytes.text_value("tokenizer.ggml.model", kind);
  bytes.key("tokenizer.ggml.tokens", 9).number(uint32_t{8}).number(uint64_t{4});
  bytes.text("<s>").text("a").text("b").text("ab");
  bytes.key("tokenizer.ggml.token_type", 9).number(uint32_t{5}).number(uint64_t{4});
  for (const int32_t type : {3, 1, 1, 1}) bytes.number(type);
  return bytes;
}

class HfTokenizer : public ::testing::Test {
 protected:
  Result<Json> make(GgufBytes& bytes) {
    const auto file = GgufFile::open(bytes.align().write(folder_.file("vocabulary.gguf")));
    return file.ok() ? gguf_tokenizer(*file.value()) : Result<Json>(file.status());
  }
  const test::ScratchFolder folder_;
};

TEST_F(HfTokenizer, ByteLevel) {
  GgufBytes bytes = vocabulary(4, "gpt2");
  bytes.text_value("tokenizer.ggml.pre", "llama-bpe").u32_value("tokenizer.ggml.bos_token_id", 0);
  bytes.key("tokenizer.ggml.add_bos_token", 7).number(uint8_t{1});
  bytes.key("tokenizer.ggml.merges", 9).number(uint32_t{8}).number(uint64_t{1}).text("a b");
  const auto made = make(bytes);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const Json& tokenizer = made.value();
  EXPECT_EQ(tokenizer["model"]["vocab"], Json({{"<s>", 0}, {"a", 1}, {"b", 2}, {"ab", 3}}));
  EXPECT_EQ(tokenizer["model"]["merges"], Json::array({"a b"}));
  EXPECT_TRUE(tokenizer["model"]["ignore_merges"]);
  EXPECT_EQ(tokenizer["added_tokens"].size(), 1u);
  EXPECT_TRUE(tokenizer["added_tokens"][0]["special"]);
  EXPECT_EQ(tokenizer["post_processor"]["special_tokens"]["<s>"]["ids"], Json::array({0}));
}

TEST_F(HfTokenizer, Pieces) {
  GgufBytes bytes = vocabulary(1, "llama");
  bytes.key("tokenizer.ggml.scores", 9).number(uint32_t{6}).number(uint64_t{4});
  for (const float score : {0.0F, 0.0F, 0.0F, -1.0F}) bytes.number(score);
  const auto made = make(bytes);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made.value()["model"]["merges"], Json::array({Json::array({"a", "b"})}));
  EXPECT_TRUE(made.value()["model"]["byte_fallback"]);
}

// Gemma 4's pieces of text have listed merges instead of scores.
TEST_F(HfTokenizer, PiecesWithMerges) {
  GgufBytes bytes = vocabulary(2, "gemma4");
  bytes.key("tokenizer.ggml.add_space_prefix", 7).number(uint8_t{0});
  bytes.key("tokenizer.ggml.merges", 9).number(uint32_t{8}).number(uint64_t{1}).text("a b");
  const auto made = make(bytes);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made.value()["model"]["merges"], Json::array({"a b"}));
  EXPECT_EQ(made.value()["normalizer"]["normalizers"].size(), 1u);
}

TEST_F(HfTokenizer, WordsOfBytes) {
  GgufBytes bytes = vocabulary(0, "rwkv");
  const auto made = make(bytes);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made.value()["model"]["type"], "WordLevel");
  EXPECT_EQ(made.value()["model"]["vocab"], Json({{"<s>", 0}, {"a", 1}, {"b", 2}, {"ab", 3}}));
  EXPECT_EQ(made.value()["added_tokens"].size(), 1u);
}

// Sarvam's are called those of bytes; no blank is put before a text.
TEST_F(HfTokenizer, PiecesByThePreTokenizersName) {
  GgufBytes bytes = vocabulary(2, "gpt2");
  bytes.text_value("tokenizer.ggml.pre", "sarvam-moe");
  bytes.key("tokenizer.ggml.merges", 9).number(uint32_t{8}).number(uint64_t{1}).text("a b");
  const auto made = make(bytes);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_TRUE(made.value()["model"]["byte_fallback"]);
  EXPECT_EQ(made.value()["normalizer"]["normalizers"].size(), 1u);
}

TEST_F(HfTokenizer, NamesWhatIsWrong) {
  GgufBytes unknown = vocabulary(0, "plamo2");
  EXPECT_NE(make(unknown).status().message().find("kind 'plamo2'"), std::string::npos);
  GgufBytes merges = vocabulary(0, "gpt2");
  EXPECT_NE(make(merges).status().message().find("no merges"), std::string::npos);
  GgufBytes scores = vocabulary(0, "llama");
  EXPECT_NE(make(scores).status().message().find("0 entries for 4"), std::string::npos);
  GgufBytes pre = vocabulary(1, "gpt2");
  pre.text_value("tokenizer.ggml.pre", "odd");
  EXPECT_NE(make(pre).status().message().find("'odd' (tokenizer.ggml.pre) is not known"),
            std::string::npos);
  GgufBytes empty(0, 1);
  empty.text_value("tokenizer.ggml.model", "gpt2");
  EXPECT_NE(make(empty).status().message().find("holds no tokens"), std::string::npos);
  GgufBytes beyond = vocabulary(3, "gpt2");
  beyond.u32_value("tokenizer.ggml.bos_token_id", 9);
  beyond.key("tokenizer.ggml.merges", 9).number(uint32_t{8}).number(uint64_t{0});
  beyond.key("tokenizer.ggml.add_bos_token", 7).number(uint8_t{1});
  const auto without = make(beyond);
  ASSERT_TRUE(without.ok()) << without.status().message();
  EXPECT_EQ(without.value().dump().find("TemplateProcessing"), std::string::npos);
}

TEST_F(HfTokenizer, ConfigHoldsSpecialTokensAndTheTemplate) {
  const auto file = GgufFile::open(test::golden_gguf("vocabulary.gguf"));
  ASSERT_TRUE(file.ok());
  const auto config = gguf_tokenizer_config(*file.value());
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config.value()["eos_token"], "<|endoftext|>");
  EXPECT_NE(config.value()["chat_template"].get<std::string>().find("<|assistant|>"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
