#include "engine/start/own_pooling.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "gguf/gguf_bytes.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

Pooling pooling_of(const char* text, bool bidirectional = true) {
  const test::ScratchFolder folder;
  std::filesystem::create_directory(folder.file("1_Pooling"));
  folder.write("1_Pooling/config.json", text);
  return own_pooling(folder.path(), bidirectional);
}

TEST(OwnPooling, IsWhatTheFolderSays) {
  EXPECT_EQ(pooling_of(R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})"),
            Pooling::kCls);
  EXPECT_EQ(pooling_of(R"({"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true})"),
            Pooling::kMean);
  EXPECT_EQ(pooling_of(R"({"pooling_mode_lasttoken": true})"), Pooling::kLast);
  EXPECT_EQ(pooling_of(R"({"pooling_mode": "mean"})", false), Pooling::kMean);
  EXPECT_EQ(pooling_of(R"({"pooling_mode_max_tokens": true})"), Pooling::kMax);
  EXPECT_EQ(pooling_of(R"({"pooling_mode_mean_sqrt_len_tokens": true})"), Pooling::kMeanSqrtLen);
  EXPECT_EQ(pooling_of(R"({"pooling_mode": "weightedmean"})"), Pooling::kWeightedMean);
}

TEST(OwnPooling, ModulesNameTheFolder) {
  const test::ScratchFolder folder;
  folder.write("modules.json", R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
                                   {"path": "pool", "type": "sentence_transformers.models.Pooling"}])");
  std::filesystem::create_directory(folder.file("pool"));
  folder.write("pool/config.json", R"({"pooling_mode": "mean"})");
  EXPECT_EQ(own_pooling(folder.path(), true), Pooling::kMean);
}

// By a key of their own, or the state of the first token.
TEST(OwnPooling, OfJudgesInFiles) {
  EXPECT_EQ(own_pooling(test::golden_gguf("encoders/xlm_roberta.gguf"), true), Pooling::kMean);
  EXPECT_EQ(own_pooling(test::golden_gguf("encoders/xlm_roberta_judge.gguf"), true), Pooling::kCls);
  EXPECT_EQ(own_pooling(test::golden_gguf("encoders/modern_bert_judge.gguf"), true), Pooling::kCls);
}

TEST(OwnPooling, IsTheTypeOfAFile) {
  const test::ScratchFolder folder;
  for (const auto& [type, wanted] : {std::pair(1U, Pooling::kMean), std::pair(2U, Pooling::kCls),
                                     std::pair(3U, Pooling::kLast), std::pair(4U, Pooling::kCls)}) {
    test::GgufBytes bytes(0, 2);
    bytes.text_value("general.architecture", "bert").u32_value("bert.pooling_type", type);
    EXPECT_EQ(own_pooling(bytes.align().write(folder.file("m.gguf")), true), wanted) << type;
  }
}

TEST(OwnPooling, OfAClassifierGoesByItsConfig) {
  const test::ScratchFolder folder;
  folder.write("config.json", R"({"architectures": ["ModernBertForSequenceClassification"],
                                  "classifier_pooling": "mean"})");
  EXPECT_EQ(own_pooling(folder.path(), true), Pooling::kMean);
  folder.write("config.json", R"({"architectures": ["ModernBertModel"],
                                  "classifier_pooling": "mean"})");
  EXPECT_EQ(own_pooling(folder.path(), true), Pooling::kCls);
}

TEST(OwnPooling, GoesByWhatRowsSeeWhereNothingIsSaid) {
  const test::ScratchFolder folder;
  EXPECT_EQ(own_pooling(folder.path(), true), Pooling::kCls);
  EXPECT_EQ(own_pooling(folder.path(), false), Pooling::kLast);
  EXPECT_EQ(
      pooling_of(R"({"pooling_mode_max_tokens": true, "pooling_mode_cls_token": true})", false),
      Pooling::kLast);
  EXPECT_EQ(pooling_of("no json", true), Pooling::kCls);
}

}  // namespace
}  // namespace foretoken
