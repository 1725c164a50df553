#include "model/heads/judge_labels.h"

#include <gtest/gtest.h>

#include "gguf/gguf_bytes.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

JudgeLabels labels_of(const char* config) {
  const test::ScratchFolder folder;
  folder.write("config.json", config);
  return judge_labels(ModelFiles(folder.path()), 2);
}

TEST(JudgeLabels, AreThoseOfTheConfig) {
  const JudgeLabels labels = labels_of(
      R"({"id2label": {"0": "sad", "1": "glad"}, "problem_type": "multi_label_classification"})");
  EXPECT_EQ(labels.names, (std::vector<std::string>{"sad", "glad"}));
  EXPECT_EQ(labels.problem_type, "multi_label_classification");
}

TEST(JudgeLabels, FilesSayHowAPairIsOneText) {
  const test::ScratchFolder folder;
  test::GgufBytes bytes(0, 2);
  bytes.text_value("general.architecture", "qwen3");
  bytes.text_value("tokenizer.chat_template.rerank", "{query}: {document}");
  const JudgeLabels labels = judge_labels(bytes.align().write(folder.file("m.gguf")), 2);
  EXPECT_EQ(labels.pair_template, "{query}: {document}");
}

TEST(JudgeLabels, HaveNumbersWhereNoneAreNamed) {
  for (const char* config : {"{}", R"({"id2label": {"0": 3}, "problem_type": null})", "no json"}) {
    const JudgeLabels labels = labels_of(config);
    EXPECT_EQ(labels.names, (std::vector<std::string>{"LABEL_0", "LABEL_1"})) << config;
    EXPECT_EQ(labels.problem_type, "");
  }
}

}  // namespace
}  // namespace foretoken
