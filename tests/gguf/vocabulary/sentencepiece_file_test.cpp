#include "gguf/vocabulary/sentencepiece_file.h"

#include <gtest/gtest.h>

#include <random>

#include "base/files/text_file.h"
#include "support/folders.h"

namespace foretoken {
namespace {

std::string golden_pieces(const char* name) {
  return read_text_file(std::string(foretoken::kSourceFolder) + "/tests/text/data/vocabularies/" +
                        name + "/tokenizer.model")
      .value();
}

using Type = SentencePieceModel::PieceType;

TEST(SentencePieceFile, HoldsPiecesAndSettings) {
  const std::string bytes = golden_pieces("bpe");
  EXPECT_TRUE(is_sentencepiece_file(bytes));
  const auto read = parse_sentencepiece_file(bytes, "x.model");
  ASSERT_TRUE(read.ok()) << read.status().message();
  const SentencePieceModel& model = read.value();
  EXPECT_EQ(model.kind, SentencePieceModel::Kind::kBpe);
  EXPECT_TRUE(model.byte_fallback && model.add_dummy_prefix && model.charsmap.empty());
  EXPECT_FALSE(model.remove_extra_whitespaces);
  EXPECT_EQ(model.pieces[0].type, Type::kUnknown);
  EXPECT_EQ(model.pieces[1].type, Type::kControl);
  EXPECT_EQ(model.pieces[3].text, "[user]");
  EXPECT_EQ(model.pieces[3].type, Type::kUserDefined);
  EXPECT_EQ(model.pieces[6].type, Type::kByte);
  const auto unigram = parse_sentencepiece_file(golden_pieces("unigram"), "x.model");
  ASSERT_TRUE(unigram.ok());
  EXPECT_EQ(unigram.value().kind, SentencePieceModel::Kind::kUnigram);
  EXPECT_FALSE(unigram.value().charsmap.empty());
  EXPECT_TRUE(unigram.value().remove_extra_whitespaces);
}

TEST(SentencePieceFile, BrokenOnesAreErrors) {
  const std::string bytes = golden_pieces("bpe");
  EXPECT_FALSE(is_sentencepiece_file(""));
  EXPECT_FALSE(is_sentencepiece_file("version https://git-lfs.github.com/spec/v1\n"));
  for (const std::string& broken : {std::string(), bytes.substr(0, bytes.size() - 3),
                                    std::string("\x0a\x7f"), std::string("\x0f")}) {
    const auto read = parse_sentencepiece_file(broken, "x.model");
    ASSERT_FALSE(read.ok());
    EXPECT_TRUE(read.status().message().starts_with("x.model is no whole SentencePiece model"));
  }
  std::mt19937 rng(5);
  for (int i = 0; i < 3000; ++i) {
    std::string changed = bytes.substr(0, 1 + rng() % bytes.size());
    for (int change = 0; change < 3; ++change) {
      changed[rng() % changed.size()] = static_cast<char>(rng());
    }
    is_sentencepiece_file(changed);
    (void)parse_sentencepiece_file(changed, "x.model").ok();
  }
}

}  // namespace
}  // namespace foretoken
