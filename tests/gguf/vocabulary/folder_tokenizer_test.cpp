#include "gguf/vocabulary/folder_tokenizer.h"

#include <gtest/gtest.h>

#include "gguf/model_texts.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using test::ScratchFolder;

std::string vocabulary_folder(const std::string& name) {
  return std::string(foretoken::kSourceFolder) + "/tests/text/data/vocabularies/" + name;
}

TEST(FolderTokenizer, FindsTheVocabulary) {
  EXPECT_EQ(folder_vocabulary(vocabulary_folder("bpe")), "tokenizer.model");
  EXPECT_EQ(folder_vocabulary(vocabulary_folder("tekken")), "tekken.json");
  EXPECT_EQ(folder_vocabulary(vocabulary_folder("qwen")), "qwen.tiktoken");
  EXPECT_EQ(folder_vocabulary(vocabulary_folder("merges_gpt2")), "vocab.json");
  EXPECT_EQ(folder_vocabulary("/nowhere"), "");
  const ScratchFolder folder;
  folder.write("vocab.json", "{}");
  EXPECT_EQ(folder_vocabulary(folder.path()), "");
}

TEST(FolderTokenizer, StandsForTheTextsOfAFolder) {
  const std::string folder = vocabulary_folder("tekken");
  EXPECT_TRUE(has_model_text(folder, "tokenizer.json"));
  const auto tokenizer = read_model_text(folder, "tokenizer.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_NE(tokenizer.value()->find("ignore_merges"), std::string::npos);
  const auto config = read_model_text(folder, "tokenizer_config.json");
  ASSERT_TRUE(config.ok());
  EXPECT_NE(config.value()->find(R"("bos_token":"<s>")"), std::string::npos);
  EXPECT_EQ(read_model_text(folder, "chat_template.jinja").value(), std::nullopt);
}

TEST(FolderTokenizer, OtherFilesAreRefusedByName) {
  const ScratchFolder folder;
  const std::string path = folder.write("tokenizer.model", "version https://git-lfs.github.com");
  const auto made = folder_tokenizer(folder.path());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().message(),
            path +
                " is neither a SentencePiece model nor a tiktoken vocabulary; the file is "
                "damaged or incomplete, fetch it again");
  EXPECT_FALSE(folder_tokenizer("/nowhere").value().has_value());
}

}  // namespace
}  // namespace foretoken
