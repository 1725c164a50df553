#include "bench/samples/prompt_files.h"

#include <gtest/gtest.h>

namespace foretoken::bench {
namespace {

std::string error_of(PromptFormat format, const std::string& text,
                     const std::string& category = "") {
  return read_prompts(format, "file", text, category).status().message();
}

TEST(PromptFiles, JsonLines) {
  const auto entries =
      read_prompts(PromptFormat::kJsonLines, "file",
                   "{\"prompt\": \"one\", \"output_tokens\": 12}\r\n\n"
                   "{\"messages\": [{\"role\": \"user\", \"content\": \"two\"}]}\n"
                   "{\"prompt\": \"three\", \"other\": 1, \"output_tokens\": null}")
          .value();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].prompt, "one");
  EXPECT_EQ(entries[0].output_tokens, 12);
  EXPECT_EQ(entries[1].messages_json, R"([{"role":"user","content":"two"}])");
  EXPECT_EQ(entries[2].prompt, "three");
  EXPECT_EQ(entries[2].output_tokens, 0);
}

TEST(PromptFiles, JsonLinesThatDoNotFit) {
  const PromptFormat format = PromptFormat::kJsonLines;
  EXPECT_EQ(error_of(format, "{\"prompt\": \"a\"}\n{\"text\": 1}"),
            "file entry 2: 'prompt' must be a string, or 'messages' an array");
  EXPECT_NE(error_of(format, "{\"prompt\": \"a\"").find("file entry 1"), std::string::npos);
  EXPECT_NE(error_of(format, "[]").find("file entry 1"), std::string::npos);
  EXPECT_NE(error_of(format, R"({"prompt": "a", "output_tokens": 0})").find("'output_tokens'"),
            std::string::npos);
  EXPECT_NE(error_of(format, R"({"prompt": "a", "output_tokens": "9"})").find("integer"),
            std::string::npos);
  EXPECT_EQ(error_of(format, " \n"), "file: holds no prompts");
}

TEST(PromptFiles, ShareGpt) {
  const auto entries = read_prompts(PromptFormat::kShareGpt, "file", R"([
    {"id": "1", "conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"},
                                  {"from": "human", "value": "more"}]},
    {"conversations": [{"value": "alone"}]}, {"conversations": []}, {}, 3,
    {"conversations": [{"value": ""}, {"value": "a"}]},
    {"conversations": [1, 2]}
  ])")
                           .value();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].prompt, "q");
  EXPECT_EQ(entries[0].answer, "a");
  EXPECT_NE(error_of(PromptFormat::kShareGpt, "{}").find("JSON array"), std::string::npos);
  EXPECT_NE(error_of(PromptFormat::kShareGpt, "[]").find("no entry"), std::string::npos);
}

TEST(PromptFiles, SpecBenchByCategory) {
  const std::string text = R"({"question_id": 1, "category": "writing", "turns": ["w", "second"]})"
                           "\n"
                           R"({"question_id": 2, "category": "rag", "turns": ["r"]})";
  EXPECT_EQ(read_prompts(PromptFormat::kSpecBench, "file", text).value().size(), 2u);
  const auto rag = read_prompts(PromptFormat::kSpecBench, "file", text, "rag").value();
  ASSERT_EQ(rag.size(), 1u);
  EXPECT_EQ(rag[0].prompt, "r");
  EXPECT_EQ(error_of(PromptFormat::kSpecBench, text, "qa"),
            "file: no prompt of the category 'qa'; it has: rag, writing");
  EXPECT_NE(error_of(PromptFormat::kSpecBench, R"({"turns": []})").find("'turns'"),
            std::string::npos);
}

TEST(PromptFiles, LinesOfAText) {
  EXPECT_EQ(text_lines("a\r\n  \n\nb c\n d"), (std::vector<std::string>{"a", "b c", " d"}));
}

}  // namespace
}  // namespace foretoken::bench
