#include "engine/request/parameters/embedding_prompts.h"

#include <gtest/gtest.h>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

EmbeddingPrompts prompts_of(const std::string& json) {
  const test::ScratchFolder folder;
  if (!json.empty()) (void)folder.write("config_sentence_transformers.json", json);
  return load_embedding_prompts(ModelFiles(folder.path()));
}

TEST(EmbeddingPrompts, AreThoseOfTheModelsFile) {
  const EmbeddingPrompts read = prompts_of(
      R"({"prompts": {"query": "query: ", "document": "", "odd": 3}, "default_prompt_name": "query",
          "similarity_fn_name": "cosine"})");
  ASSERT_EQ(read.all.size(), 2u);
  EXPECT_EQ(read.all[0].name, "query");
  EXPECT_EQ(read.all[0].text, "query: ");
  EXPECT_EQ(read.all[1].text, "");
  EXPECT_EQ(read.usual, "query");
}

TEST(EmbeddingPrompts, NoneIsNoError) {
  for (const char* json : {"", "{}", "{", R"({"prompts": null, "default_prompt_name": "query"})",
                           R"({"prompts": {}, "default_prompt_name": null})"}) {
    const EmbeddingPrompts read = prompts_of(json);
    EXPECT_TRUE(read.all.empty() && read.usual.empty()) << json;
  }
  EXPECT_EQ(prompts_of(R"({"prompts": {"a": "b"}, "default_prompt_name": "c"})").usual, "");
}

}  // namespace
}  // namespace foretoken
