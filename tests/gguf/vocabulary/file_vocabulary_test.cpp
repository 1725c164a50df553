#include "gguf/vocabulary/file_vocabulary.h"

#include <gtest/gtest.h>

#include "gguf/gguf_bytes.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

test::GgufBytes two_tokens(uint64_t more_values) {
  test::GgufBytes bytes(0, 1 + more_values);
  bytes.key("tokenizer.ggml.tokens", 9).number(uint32_t{8}).number(uint64_t{2});
  bytes.text("<s>").text("a");
  return bytes;
}

TEST(FileVocabulary, TypesMayBeMissing) {
  const test::ScratchFolder folder;
  test::GgufBytes bytes = two_tokens(2);
  bytes.u32_value("tokenizer.ggml.bos_token_id", 0).u32_value("tokenizer.ggml.eos_token_id", 9);
  const auto file = GgufFile::open(bytes.align().write(folder.file("v.gguf"))).value();
  const GgufVocabulary vocabulary = read_gguf_vocabulary(*file).value();
  EXPECT_TRUE(vocabulary.is_of(1, GgufTokenType::kNormal));
  EXPECT_EQ(gguf_token_ids(vocabulary)["a"], 1);
  EXPECT_TRUE(gguf_added_tokens(vocabulary).empty());
  EXPECT_EQ(gguf_token(*file, vocabulary, "tokenizer.ggml.bos_token_id").value(), "<s>");
  EXPECT_EQ(gguf_token(*file, vocabulary, "tokenizer.ggml.eos_token_id").value(), "");
}

TEST(FileVocabulary, TypesAreAsManyAsTokens) {
  const test::ScratchFolder folder;
  test::GgufBytes bytes = two_tokens(1);
  bytes.key("tokenizer.ggml.token_type", 9).number(uint32_t{5}).number(uint64_t{1}).number(3);
  const auto file = GgufFile::open(bytes.align().write(folder.file("v.gguf"))).value();
  const auto read = read_gguf_vocabulary(*file);
  EXPECT_NE(read.status().message().find("1 entries for 2 tokens"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
