#include "gguf/vocabulary/tokenizer_settings.h"

#include <gtest/gtest.h>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

TEST(TokenizerSettings, OfAnEmptyFolder) {
  const test::ScratchFolder folder;
  const auto settings = read_tokenizer_settings(folder.path());
  ASSERT_TRUE(settings.ok()) << settings.status().message();
  EXPECT_TRUE(settings.value().added.empty());
  EXPECT_EQ(settings.value().role("bos_token", "<s>"), "<s>");
  EXPECT_EQ(settings.value().add_bos, std::nullopt);
}

TEST(TokenizerSettings, OfAllFiles) {
  const test::ScratchFolder folder;
  folder.write("tokenizer_config.json",
               R"({"tokenizer_class": "LlamaTokenizer", "legacy": false, "add_bos_token": true,
                   "bos_token": {"content": "<s>", "lstrip": false}, "pad_token": null,
                   "added_tokens_decoder": {"9": {"content": "<x>", "special": true}}})");
  folder.write("special_tokens_map.json", R"({"eos_token": "</s>", "bos_token": "other"})");
  folder.write("added_tokens.json", R"({"<y>": 10, "</s>": 11})");
  folder.write("config.json", R"({"model_type": "llama"})");
  const auto read = read_tokenizer_settings(folder.path());
  ASSERT_TRUE(read.ok()) << read.status().message();
  const TokenizerSettings& settings = read.value();
  EXPECT_EQ(settings.class_name, "LlamaTokenizer");
  EXPECT_EQ(settings.model_type, "llama");
  EXPECT_EQ(settings.legacy, false);
  EXPECT_EQ(settings.role("bos_token", ""), "<s>");
  EXPECT_EQ(settings.role("eos_token", ""), "</s>");
  EXPECT_EQ(settings.role("pad_token", "none"), "none");
  ASSERT_EQ(settings.added.size(), 3u);
  EXPECT_TRUE(settings.added.at(9).special);
  EXPECT_FALSE(settings.added.at(10).special);
  EXPECT_TRUE(settings.added.at(11).special);
}

TEST(TokenizerSettings, BrokenFilesAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"tokenizer_config.json", "["},
      {"tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "a"}}})"},
      {"tokenizer_config.json", R"({"added_tokens_decoder": {"-1": {"content": "a"}}})"},
      {"added_tokens.json", R"({"a": "b"})"},
      {"added_tokens.json", R"({"a": 99999999999})"},
      {"special_tokens_map.json", "7"},
  };
  for (const auto& [name, text] : cases) {
    const test::ScratchFolder folder;
    const std::string path = folder.write(name, text);
    const auto settings = read_tokenizer_settings(folder.path());
    ASSERT_FALSE(settings.ok()) << text;
    EXPECT_TRUE(settings.status().message().starts_with(path)) << settings.status().message();
  }
}

TEST(TokenizerSettings, AddedTokensTakeThePlaceOfPieces) {
  TokenizerSettings settings;
  settings.added[5] = {5, "<new>", false};
  settings.roles["eos_token"] = "</s>";
  std::map<std::string, int64_t> ids = {{"<unused>", 5}, {"</s>", 2}, {"a", 3}};
  const auto added = all_added_tokens(settings, {{2, "</s>"}}, &ids);
  ASSERT_EQ(added.size(), 2u);
  EXPECT_EQ(added[1].content, "<new>");
  EXPECT_EQ(ids, (std::map<std::string, int64_t>{{"<new>", 5}, {"</s>", 2}, {"a", 3}}));
}

}  // namespace
}  // namespace foretoken
