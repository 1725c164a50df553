#include "text/tokenizer_config.h"

#include <gtest/gtest.h>

#include <string>

#include "support/scratch_folder.h"
#include "text/text_fixtures.h"

namespace foretoken {
namespace {

TEST(TokenizerConfig, EmptyFolderIsAnEmptyConfig) {
  test::ScratchFolder folder;
  auto config = load_tokenizer_config(folder.path());
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_TRUE(config.value().special_tokens.empty());
  EXPECT_TRUE(config.value().chat_templates.empty());
}

TEST(TokenizerConfig, ReadsTokensAsTextAndAsObject) {
  test::ScratchFolder folder;
  folder.write("tokenizer_config.json",
               R"({"bos_token":"<s>","eos_token":{"content":"</s>"},"pad_token":null,
                   "add_bos_token":true,"chat_template":"one"})");
  folder.write("special_tokens_map.json", R"({"bos_token":"ignored","unk_token":"<unk>"})");
  auto config = load_tokenizer_config(folder.path());
  ASSERT_TRUE(config.ok()) << config.status().message();
  const std::map<std::string, std::string> expected = {
      {"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}};
  EXPECT_EQ(config.value().special_tokens, expected);
  EXPECT_EQ(config.value().chat_templates.at("default"), "one");
}

TEST(TokenizerConfig, NamedTemplatesAndTheFileThatWins) {
  test::ScratchFolder folder;
  folder.write("tokenizer_config.json",
               R"({"chat_template":[{"name":"default","template":"d"},
                                    {"name":"tool_use","template":"t"}]})");
  folder.write("chat_template.jinja", "from the file");
  auto config = load_tokenizer_config(folder.path());
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config.value().chat_templates.at("default"), "from the file");
  EXPECT_EQ(config.value().chat_templates.at("tool_use"), "t");
  folder.write("tokenizer_config.json", R"({"chat_template": {"default": "d", "rag": "r"}})");
  config = load_tokenizer_config(folder.path());
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config.value().chat_templates.at("rag"), "r") << "an object of templates";
}

TEST(TokenizerConfig, AnEmptyTemplateIsNone) {
  const test::ScratchFolder folder;
  folder.write("tokenizer_config.json", R"({"chat_template": " \n"})");
  EXPECT_TRUE(load_tokenizer_config(folder.path()).value().chat_templates.empty());
}

TEST(TokenizerConfig, TemplatesBesideTheUsualOne) {
  test::ScratchFolder folder;
  folder.write("tokenizer_config.json",
               R"({"chat_template":[{"name":"default","template":"d"},
                                    {"name":"tool_use","template":"old"}]})");
  std::filesystem::create_directory(folder.file("additional_chat_templates"));
  folder.write("additional_chat_templates/tool_use.jinja", "t");
  folder.write("additional_chat_templates/rag.jinja", "r");
  folder.write("additional_chat_templates/README.md", "no template");
  const std::map<std::string, std::string> wanted = {
      {"default", "d"}, {"rag", "r"}, {"tool_use", "t"}};
  EXPECT_EQ(load_tokenizer_config(folder.path()).value().chat_templates, wanted);
}

TEST(TokenizerConfig, BrokenFilesAreNamed) {
  for (const char* content : {"{", "[]", "", R"({"chat_template":7})", R"({"chat_template":[{}]})",
                              R"({"chat_template":[{"name":1,"template":"x"}]})"}) {
    test::ScratchFolder folder;
    folder.write("tokenizer_config.json", content);
    auto config = load_tokenizer_config(folder.path());
    ASSERT_FALSE(config.ok()) << content;
    EXPECT_EQ(config.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(config.status().message().find("tokenizer_config.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace foretoken
