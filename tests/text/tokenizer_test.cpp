#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/files/text_file.h"
#include "support/folders.h"
#include "support/scratch_folder.h"
#include "text/text_fixtures.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

TEST(Tokenizer, EncodesWithAndWithoutSpecialTokens) {
  auto tokenizer = load_fixture(data_folder("byte_level"));
  const Ids plain = tokenizer->encode("the", false).value();
  ASSERT_EQ(plain.size(), 2u);  // "t" and "he"; only " the" is one token
  const Ids marked = tokenizer->encode("the", true).value();
  EXPECT_EQ(marked, (Ids{275, plain[0], plain[1]}));
  EXPECT_EQ(tokenizer->encode(" the", false).value().size(), 1u);
  EXPECT_TRUE(tokenizer->encode("", false).value().empty());
}

TEST(Tokenizer, SpecialTokensInTheTextBecomeTheirIds) {
  auto tokenizer = load_fixture(data_folder("byte_level"));
  const Ids ids = tokenizer->encode("<|role|>\n<think>", false).value();
  EXPECT_EQ(ids, (Ids{277, tokenizer->token_to_id("Ċ").value(), 278}));
  EXPECT_EQ(tokenizer->decode(ids, false).value(), "<|role|>\n<think>");
  EXPECT_EQ(tokenizer->decode(ids, true).value(), "\n<think>");
}

TEST(Tokenizer, VocabularyLookups) {
  auto tokenizer = load_fixture(data_folder("byte_level"));
  EXPECT_EQ(tokenizer->vocab_size(), 279);
  EXPECT_EQ(tokenizer->token_to_id("<|end|>"), 276);
  EXPECT_EQ(tokenizer->token_to_id("nothing of the sort"), std::nullopt);
  EXPECT_EQ(tokenizer->token_to_id("\xff"), std::nullopt);
  EXPECT_EQ(tokenizer->id_to_token(276), "<|end|>");
  EXPECT_EQ(tokenizer->id_to_token(279), std::nullopt);
  EXPECT_EQ(tokenizer->id_to_token(-1), std::nullopt);
  EXPECT_EQ(tokenizer->bos_id(), 275);
  EXPECT_EQ(tokenizer->eos_id(), 276);
  EXPECT_TRUE(tokenizer->is_special(276));
  EXPECT_FALSE(tokenizer->is_special(278));
  EXPECT_FALSE(tokenizer->is_special(-1));
  EXPECT_FALSE(tokenizer->is_special(1 << 30));
}

// Of files that llama.cpp's converter made, as the folders' tokenizers do.
TEST(Tokenizer, EncodersInFilesHaveTheIdsOfTheirFolders) {
  const std::string folder = std::string(foretoken::kSourceFolder) + "/tests/golden/gguf/encoders/";
  const auto golden = nlohmann::json::parse(read_text_file(folder + "texts.json").value());
  for (const auto& [name, texts] : golden.items()) {
    const auto tokenizer = load_fixture(folder + name + ".gguf");
    for (const auto& text : texts) {
      const auto ids = tokenizer->encode(text["text"].get<std::string>(), true);
      EXPECT_EQ(text["ids"].get<Ids>(), ids.value()) << name << ": " << text["text"];
    }
  }
}

TEST(Tokenizer, RandomTextSurvivesTheRoundTrip) {
  std::mt19937 rng(1);
  for (const char* name : {"byte_level", "sentencepiece"}) {
    auto tokenizer = load_fixture(data_folder(name));
    for (int i = 0; i < 500; ++i) {
      const std::string text = random_text(rng, 40);
      const Ids ids = tokenizer->encode(text, false).value();
      EXPECT_EQ(tokenizer->decode(ids, false).value(), text) << name;
      const Ids marked = tokenizer->encode(text, true).value();
      EXPECT_EQ(tokenizer->decode(marked, true).value(), text) << name;
    }
  }
}

TEST(Tokenizer, NulBytesAndLongTexts) {
  auto tokenizer = load_fixture(data_folder("byte_level"));
  std::string text("a\0b", 3);
  for (int i = 0; i < 5000; ++i) text += " hello";
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, false).value(), false).value(), text);
}

TEST(Tokenizer, BadInputIsAnErrorWithWords) {
  auto tokenizer = load_fixture(data_folder("byte_level"));
  auto encoded = tokenizer->encode("ab\xff", false);
  ASSERT_FALSE(encoded.ok());
  EXPECT_EQ(encoded.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(encoded.status().message().find("offset 2"), std::string::npos);
  auto decoded = tokenizer->decode(Ids{1, -1}, false);
  ASSERT_FALSE(decoded.ok());
  EXPECT_NE(decoded.status().message().find("-1"), std::string::npos);
  EXPECT_EQ(tokenizer->decode(Ids{100000, 2000000000}, false).value(), "");
  EXPECT_EQ(tokenizer->decode(Ids{}, false).value(), "");
}

TEST(Tokenizer, WhatTrainingsRunsSetIsIgnored) {
  test::ScratchFolder folder;
  std::string file_text = read_text_file(data_folder("byte_level") / "tokenizer.json").value();
  const auto swap = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(file_text.find(from), std::string::npos);
    file_text.replace(file_text.find(from), from.size(), to);
  };
  swap(
      R"("truncation": null)",
      R"("truncation": {"direction":"Right","max_length":4,"strategy":"LongestFirst","stride":0})");
  swap(R"("padding": null)",
       R"("padding": {"strategy":{"Fixed":8},"direction":"Left","pad_to_multiple_of":null,)"
       R"("pad_id":0,"pad_type_id":0,"pad_token":"!"})");
  swap(R"("dropout": null)", R"("dropout": 1.0)");
  folder.write("tokenizer.json", "\xEF\xBB\xBF" + file_text);
  auto tokenizer = load_fixture(folder.path());
  EXPECT_EQ(tokenizer->encode("a b c d e f", false).value().size(), 11u);
  EXPECT_EQ(tokenizer->encode("the story", false).value(),
            load_fixture(data_folder("byte_level"))->encode("the story", false).value());
  EXPECT_EQ(tokenizer->encode("a", false).value().size(), 1u);
  EXPECT_EQ(tokenizer->bos_id(), std::nullopt);
}

TEST(Tokenizer, SpecialTokensAreSplitWhereTheFolderSaysSo) {
  test::ScratchFolder folder;
  folder.write("tokenizer.json",
               read_text_file(data_folder("byte_level") / "tokenizer.json").value());
  const auto whole = load_fixture(folder.path());
  const std::string bos = whole->id_to_token(275).value();
  EXPECT_EQ(whole->encode(bos, false).value(), Ids{275});
  folder.write("tokenizer_config.json", R"({"split_special_tokens": true})");
  const auto split = load_fixture(folder.path());
  EXPECT_GT(split->encode(bos, false).value().size(), 1u);
  EXPECT_EQ(split->encode("the", true).value(), whole->encode("the", true).value());
}

TEST(Tokenizer, UnusableFoldersNameTheFile) {
  test::ScratchFolder folder;
  auto loaded = load_hf_tokenizer(folder.path());
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.status().code(), StatusCode::kNotFound);
  EXPECT_NE(loaded.status().message().find("tokenizer.json"), std::string::npos);
  folder.write("merges.txt", "x");
  EXPECT_NE(load_hf_tokenizer(folder.path()).status().message().find("one is missing"),
            std::string::npos);
  folder.write("tokenizer.model", "x");
  EXPECT_NE(load_hf_tokenizer(folder.path()).status().message().find("tokenizer.model"),
            std::string::npos);
  const std::string whole = read_text_file(data_folder("byte_level") / "tokenizer.json").value();
  for (const std::string& broken :
       {std::string(), std::string("[]"), std::string("{}"), whole.substr(0, whole.size() / 2),
        std::string("\xff\xfe"), std::string(10000, '['), std::string(R"({"model":{}})")}) {
    folder.write("tokenizer.json", broken);
    loaded = load_hf_tokenizer(folder.path());
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(loaded.status().message().find("tokenizer.json"), std::string::npos);
  }
}

TEST(Tokenizer, OneObjectServesManyThreads) {
  auto tokenizer = load_fixture(data_folder("byte_level"));
  std::vector<std::thread> threads;
  std::vector<int> failures(4, 0);
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 rng(t);
      for (int i = 0; i < 200; ++i) {
        const std::string text = random_text(rng, 30);
        const Ids ids = tokenizer->encode(text, false).value();
        if (tokenizer->decode(ids, false).value() != text) ++failures[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, std::vector<int>(4, 0));
}

// The bundled model's vocabulary as a GGUF file.
TEST(GgufTokenizer, EncodesAsTheFolderDoes) {
  const std::filesystem::path root(foretoken::kSourceFolder);
  const auto folder = load_hf_tokenizer(root / "models/foretoken-7m");
  const auto file = load_hf_tokenizer(root / "tests/golden/gguf/vocabulary.gguf");
  ASSERT_TRUE(folder.ok() && file.ok()) << file.status().message();
  const std::string text = read_text_file(root / "README.md").value() +
                           "<|user|>1234 + 56 = na\u00efve \u65e5\u672c <|end|>\n\n  x\t'll";
  const std::vector<int32_t> ids = folder.value()->encode(text, true).value();
  EXPECT_EQ(file.value()->encode(text, true).value(), ids);
  EXPECT_EQ(file.value()->decode(ids, false).value(), text);
  EXPECT_EQ(file.value()->vocab_size(), folder.value()->vocab_size());
}

}  // namespace
}  // namespace foretoken
