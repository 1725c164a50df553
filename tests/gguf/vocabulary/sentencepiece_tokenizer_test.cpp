#include "gguf/vocabulary/sentencepiece_tokenizer.h"

#include <gtest/gtest.h>

// tests/text/vocabulary_golden_test.cpp compares the tokens with SentencePiece's.

namespace foretoken {
namespace {

using Type = SentencePieceModel::PieceType;

SentencePieceModel small_model() {
  SentencePieceModel model;
  model.kind = SentencePieceModel::Kind::kBpe;
  model.pieces = {{"<unk>", 0, Type::kUnknown}, {"<s>", 0, Type::kControl},
                  {"</s>", 0, Type::kControl},  {"[x]", 0, Type::kUserDefined},
                  {"ab", 0, Type::kNormal},     {"a", -1, Type::kNormal},
                  {"b", -2, Type::kNormal}};
  return model;
}

TEST(SentencePieceTokenizer, MakesWhatATokenizerJsonHas) {
  const auto made = sentencepiece_tokenizer(small_model(), {}, "x.model");
  ASSERT_TRUE(made.ok()) << made.status().message();
  const nlohmann::json& json = made.value().tokenizer;
  EXPECT_EQ(json["model"]["merges"].size(), 1u);
  EXPECT_EQ(json["model"]["unk_token"], "<unk>");
  EXPECT_EQ(json["added_tokens"].size(), 3u);
  // User-defined pieces are cut off before the model, which takes them whole.
  EXPECT_EQ(json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"], R"(\[x\])");
  EXPECT_EQ(json["model"]["ignore_merges"], true);
  EXPECT_EQ(json["post_processor"]["single"].size(), 2u);
  EXPECT_EQ(made.value().config["bos_token"], "<s>");
  EXPECT_EQ(made.value().config["eos_token"], "</s>");
}

TEST(SentencePieceTokenizer, SettingsChangeWhatIsAroundAText) {
  TokenizerSettings settings;
  settings.add_bos = false;
  settings.add_eos = true;
  settings.legacy = false;
  settings.added[3] = {3, "[x]"};
  const auto made = sentencepiece_tokenizer(small_model(), settings, "x.model");
  ASSERT_TRUE(made.ok());
  const nlohmann::json& json = made.value().tokenizer;
  EXPECT_EQ(json["post_processor"]["single"][1]["SpecialToken"]["id"], "</s>");
  EXPECT_EQ(json["pre_tokenizer"]["pretokenizers"].size(), 1u);
  EXPECT_EQ(json["pre_tokenizer"]["pretokenizers"][0]["prepend_scheme"], "first");
  EXPECT_EQ(json["added_tokens"].size(), 4u);
  EXPECT_EQ(json["model"]["ignore_merges"], false);
}

// Its own code numbers tokens behind the pieces, puts two of them before a text, and never finds
// them in one; what the folder lists is found.
TEST(SentencePieceTokenizer, ChatGlmsTokensStandBehindThePieces) {
  TokenizerSettings settings;
  settings.class_name = "ChatGLMTokenizer";
  settings.added[14] = {14, "<|user|>"};
  const auto made = sentencepiece_tokenizer(small_model(), settings, "x.model");
  ASSERT_TRUE(made.ok());
  const nlohmann::json& json = made.value().tokenizer;
  const nlohmann::json& around = json["post_processor"];
  ASSERT_EQ(around["single"].size(), 3u);
  EXPECT_EQ(around["single"][0]["SpecialToken"]["id"], "[gMASK]");
  EXPECT_EQ(around["special_tokens"]["[gMASK]"]["ids"][0], 8);
  EXPECT_EQ(around["special_tokens"]["sop"]["ids"][0], 10);
  EXPECT_EQ(json["model"]["vocab"]["eop"], 11);
  EXPECT_EQ(json["added_tokens"].size(), 4u);
}

// DeBERTa's file has the padding before the begin; texts stand between two marks.
TEST(SentencePieceTokenizer, DebertasMarksStandAroundATextWithoutSettings) {
  SentencePieceModel model = small_model();
  model.kind = SentencePieceModel::Kind::kUnigram;
  model.pieces = {{"[PAD]", 0, Type::kControl},
                  {"[CLS]", 0, Type::kControl},
                  {"[SEP]", 0, Type::kControl},
                  {"[UNK]", 0, Type::kUnknown},
                  {"a", -1, Type::kNormal}};
  TokenizerSettings settings;
  settings.model_type = "deberta-v2";
  const auto made = sentencepiece_tokenizer(model, settings, "spm.model");
  ASSERT_TRUE(made.ok());
  const nlohmann::json& around = made.value().tokenizer["post_processor"]["single"];
  ASSERT_EQ(around.size(), 3u);
  EXPECT_EQ(around[0]["SpecialToken"]["id"], "[CLS]");
  EXPECT_EQ(around[2]["SpecialToken"]["id"], "[SEP]");
}

TEST(SentencePieceTokenizer, OtherKindsAreRefused) {
  SentencePieceModel model = small_model();
  model.kind = SentencePieceModel::Kind::kWord;
  auto made = sentencepiece_tokenizer(model, {}, "x.model");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().message(),
            "x.model: SentencePiece models of whole words are not read; put a tokenizer.json into "
            "the folder");
  model = small_model();
  model.whitespace_is_suffix = true;
  made = sentencepiece_tokenizer(model, {}, "x.model");
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("treat_whitespace_as_suffix"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
