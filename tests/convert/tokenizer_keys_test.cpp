#include "convert/tokenizer_keys.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files/text_file.h"
#include "gguf/hf_config.h"
#include "gguf/vocabulary/piece_merges.h"
#include "support/folders.h"
#include "support/scratch_folder.h"
#include "text/random_texts.h"
#include "text/tokenizer.h"
#include "text/tokenizer_config.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;
using test::ScratchFolder;

constexpr size_t kNumTexts = 500;

Json family(const std::string& name) {
  const std::string path = std::string(foretoken::kSourceFolder) + "/tests/text/data/tokenizers/" +
                           name + "/tokenizer.json";
  return Json::parse(read_text_file(path).value());
}

Result<std::string> written(const ScratchFolder& folder, int32_t vocab_size,
                            const std::vector<int32_t>& eos_ids = {}) {
  GgufKeys keys;
  keys.add_text("general.architecture", "llama");
  FT_RETURN_IF_ERROR(add_tokenizer_keys(folder.path(), vocab_size, eos_ids, keys));
  const std::string path = folder.file("x.gguf");
  FT_ASSIGN_OR_RETURN(auto writer, GgufWriter::create(path, keys, {}, true));
  FT_RETURN_IF_ERROR(writer->finish());
  return path;
}

void expect_same_ids(const ScratchFolder& folder, const std::string& file) {
  const auto wanted = load_hf_tokenizer(folder.path());
  const auto made = load_hf_tokenizer(file);
  ASSERT_TRUE(wanted.ok() && made.ok()) << made.status().message();
  for (size_t i = 0; i < kNumTexts; ++i) {
    const std::string& text = random_texts()[i];
    const auto ids = wanted.value()->encode(text, true);
    ASSERT_EQ(made.value()->encode(text, true).value(), ids.value()) << text;
    EXPECT_EQ(made.value()->decode(ids.value(), false).value(),
              wanted.value()->decode(ids.value(), false).value());
  }
}

TEST(TokenizerKeys, ByteLevelFamilies) {
  for (const std::string name : {"llama3", "qwen2", "gpt2"}) {
    const ScratchFolder folder;
    folder.write("tokenizer.json", family(name).dump());
    const auto file = written(folder, 600);
    ASSERT_TRUE(file.ok()) << file.status().message();
    expect_same_ids(folder, file.value());
  }
}

// Llama 2's form, with all merges that its pieces allow.
Json sentence_pieces() {
  Json tokenizer = family("llama2");
  std::vector<std::string> pieces(tokenizer["model"]["vocab"].size());
  std::vector<double> scores;
  for (const auto& [piece, id] : tokenizer["model"]["vocab"].items()) {
    pieces[id.get<size_t>()] = piece;
  }
  for (size_t i = 0; i < pieces.size(); ++i) scores.push_back(-static_cast<double>(i));
  tokenizer["model"]["merges"] = piece_merges(pieces, scores);
  return tokenizer;
}

TEST(TokenizerKeys, SentencePieces) {
  const ScratchFolder folder;
  folder.write("tokenizer.json", sentence_pieces().dump());
  const auto file = written(folder, 1000);
  ASSERT_TRUE(file.ok()) << file.status().message();
  expect_same_ids(folder, file.value());
  folder.write("tokenizer.json", family("llama2").dump());
  EXPECT_NE(written(folder, 1000).status().message().find("SentencePiece"), std::string::npos);
}

TEST(TokenizerKeys, SpecialTokensAndTemplate) {
  const ScratchFolder folder;
  folder.write("tokenizer.json", family("llama3").dump());
  folder.write("tokenizer_config.json",
               R"({"bos_token": "<s>", "eos_token": "</s>", "chat_template": "{{ messages }}"})");
  const auto eos = load_hf_tokenizer(folder.path()).value()->token_to_id("</s>").value();
  const auto file = written(folder, 600, {7, eos, 9});
  ASSERT_TRUE(file.ok()) << file.status().message();
  const TokenizerConfig config = load_tokenizer_config(file.value()).value();
  EXPECT_EQ(config.special_tokens.at("bos_token"), "<s>");
  EXPECT_EQ(config.special_tokens.at("eos_token"), "</s>");
  EXPECT_EQ(config.chat_templates.at("default"), "{{ messages }}");
  const auto gguf = GgufFile::open(file.value());
  // Behind those that are written, the tokenizer's <|end|>, which ends turns by its text.
  EXPECT_EQ(gguf_generation_config(*gguf.value()).value()["eos_token_id"],
            Json::array({eos, 7, 9, 2}));
  EXPECT_NE(written(folder, 600, {1, 2, 3, 4}).status().message().find("room for 3"),
            std::string::npos);
  EXPECT_NE(written(folder, 100).status().message().find("the model has 100 ids"),
            std::string::npos);
}

TEST(TokenizerKeys, TemplatesKeepTheirNames) {
  const ScratchFolder folder;
  folder.write("tokenizer.json", family("llama3").dump());
  folder.write("tokenizer_config.json",
               R"({"chat_template": [{"name": "default", "template": "d"},
                   {"name": "mine", "template": "m"}, {"name": "tool_use", "template": "t"}]})");
  const auto file = written(folder, 600);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const std::map<std::string, std::string> wanted = {
      {"default", "d"}, {"mine", "m"}, {"tool_use", "t"}};
  EXPECT_EQ(load_tokenizer_config(file.value()).value().chat_templates, wanted);
}

TEST(TokenizerKeys, WhatGgufFilesCannotSay) {
  const ScratchFolder folder;
  for (const auto& [name, wanted] :
       {std::pair("gemma", "normalizer"), std::pair("wordpiece", "type BPE"),
        std::pair("unigram", "type BPE")}) {
    folder.write("tokenizer.json", family(name).dump());
    const Status status = written(folder, 2000).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << name;
    EXPECT_NE(status.message().find(wanted), std::string::npos) << status.message();
  }
  Json odd = family("gpt2");
  odd["pre_tokenizer"] = {{"type", "Whitespace"}};
  folder.write("tokenizer.json", odd.dump());
  const Status unnamed = written(folder, 600).status();
  EXPECT_EQ(unnamed.code(), StatusCode::kUnsupported);
  EXPECT_NE(unnamed.message().find("no name for its pre_tokenizer"), std::string::npos)
      << unnamed.message();
  Json bert = family("gpt2");
  bert["post_processor"] = {{"type", "BertProcessing"}};
  folder.write("tokenizer.json", bert.dump());
  EXPECT_NE(written(folder, 600).status().message().find("post_processor"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
