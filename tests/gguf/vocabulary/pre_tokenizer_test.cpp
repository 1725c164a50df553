#include "gguf/vocabulary/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/files/text_file.h"
#include "gguf/vocabulary/tokenizer_build.h"
#include "support/folders.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

const char* match(const Json& tokenizer) {
  const PreTokenizer* found = match_pre_tokenizer(tokenizer);
  return found != nullptr ? found->name.data() : "";
}

TEST(PreTokenizer, WhatIsMadeIsFound) {
  for (const char* name :
       {"llama-bpe", "qwen2",  "tekken",   "gpt-2",       "smollm",       "command-r",
        "mpt",       "gpt-4o", "dbrx",     "deepseek-v3", "deepseek-llm", "deepseek-coder",
        "falcon",    "viking", "bloom",    "kimi-k2",     "tiny_aya",     "youtu",
        "afmoe",     "laguna", "spark2_5", "jais-2",      "minicpm5",     "ufakzeka",
        "superbpe"}) {
    const PreTokenizer* pre = find_pre_tokenizer(name);
    ASSERT_NE(pre, nullptr);
    const Json tokenizer = {{"normalizer", normalizer_json(*pre)},
                            {"pre_tokenizer", pre_tokenizer_json(*pre)},
                            {"model", {{"ignore_merges", pre->ignores_merges}}}};
    EXPECT_STREQ(match(tokenizer), name);
  }
  EXPECT_EQ(find_pre_tokenizer("odd"), nullptr);
  EXPECT_GT(std::ranges::count(pre_tokenizer_names(), "tekken"), 0);
}

TEST(PreTokenizer, SeveralNamesMeanTheSame) {
  for (const auto& [name, same] :
       {std::pair("chatglm-bpe", "dbrx"), std::pair("refact", "smollm"), std::pair("olmo", "mpt"),
        std::pair("stablelm2", "qwen2"), std::pair("pixtral", "llama-bpe")}) {
    const PreTokenizer *one = find_pre_tokenizer(name), *other = find_pre_tokenizer(same);
    ASSERT_TRUE(one != nullptr && other != nullptr) << name;
    EXPECT_EQ(pre_tokenizer_json(*one), pre_tokenizer_json(*other)) << name;
    EXPECT_EQ(normalizer_json(*one), normalizer_json(*other)) << name;
  }
}

TEST(PreTokenizer, FamiliesOfModels) {
  const std::string folder = std::string(foretoken::kSourceFolder) + "/tests/text/data/tokenizers/";
  for (const auto& [family, name] :
       {std::pair("llama3", "llama-bpe"), std::pair("qwen2", "qwen2"), std::pair("gpt2", "gpt-2"),
        std::pair("deepseek", "deepseek-v3"), std::pair("wordpiece", ""),
        std::pair("unigram", "")}) {
    const auto text = read_text_file(folder + family + "/tokenizer.json");
    ASSERT_TRUE(text.ok());
    EXPECT_STREQ(match(Json::parse(text.value())), name) << family;
  }
}

TEST(PreTokenizer, OddFilesHaveNone) {
  EXPECT_STREQ(match(Json::object()), "");
  EXPECT_STREQ(match({{"pre_tokenizer", 7}, {"model", 8}}), "");
  EXPECT_STREQ(
      match({{"pre_tokenizer", byte_level_step(true)}, {"normalizer", {{"type", "NFKC"}}}}), "");
}

}  // namespace
}  // namespace foretoken
