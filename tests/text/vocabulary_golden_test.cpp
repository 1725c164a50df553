#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "text/random_texts.h"
#include "text/text_fixtures.h"
#include "text/tokenizer.h"

// Folders without a tokenizer.json against SentencePiece, tiktoken, mistral-common and transformers
// (tools/golden/gen_vocabularies.py describes the files).

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

constexpr size_t kTextsOfDigest = 100;

class VocabularyGolden : public ::testing::TestWithParam<const char*> {
 protected:
  const std::filesystem::path folder_ = data_folder("vocabularies") / GetParam();
  const std::unique_ptr<Tokenizer> tokenizer_ = load_fixture(folder_);
  const nlohmann::json golden_ = nlohmann::json::parse(std::ifstream(folder_ / "golden.json"));
};

std::string packed_ids(const Ids& ids) {
  std::string bytes;
  for (const int32_t id : ids) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(id >> shift);
  }
  return bytes + "\xff\xff\xff\xff";
}

TEST_P(VocabularyGolden, AgreesWithTheLibraryOfItsForm) {
  const std::vector<std::string>& texts = random_texts();
  EXPECT_EQ(tokenizer_->encode("Hi", true).value(), golden_.at("special").get<Ids>());
  const auto skipped = golden_.at("skipped").get<std::set<size_t>>();
  EXPECT_LT(skipped.size(), 50u);
  for (const auto& first : golden_.at("first")) {
    const auto text = first[0].get<std::string>();
    EXPECT_EQ(tokenizer_->encode(text, false).value(), first[1].get<Ids>()) << text;
  }
  std::string all;
  for (size_t chunk = 0; chunk < golden_.at("ids").size(); ++chunk) {
    std::string packed, decoded;
    for (size_t i = chunk * kTextsOfDigest; i < (chunk + 1) * kTextsOfDigest; ++i) {
      const Ids ids = skipped.contains(i) ? Ids() : tokenizer_->encode(texts[i], false).value();
      packed += packed_ids(ids);
      decoded += tokenizer_->decode(ids, true).value() + '\xff';
      all += texts[i] + '\xff';
    }
    EXPECT_EQ(fnv1a(packed), golden_.at("ids")[chunk].get<std::string>())
        << "texts from " << chunk * kTextsOfDigest;
    if (golden_.contains("decoded")) {
      EXPECT_EQ(fnv1a(decoded), golden_.at("decoded")[chunk].get<std::string>())
          << chunk * kTextsOfDigest;
    }
  }
  ASSERT_EQ(fnv1a(all), golden_.at("texts").get<std::string>()) << "the two generators differ";
}

INSTANTIATE_TEST_SUITE_P(Forms, VocabularyGolden,
                         ::testing::Values("bpe", "bpe_not_legacy", "bpe_no_prefix", "unigram",
                                           "unigram_unknown", "cl100k", "o200k", "qwen", "kimi",
                                           "glm4", "tekken", "merges_gpt2", "merges_qwen2"),
                         [](const auto& form) { return std::string(form.param); });

}  // namespace
}  // namespace foretoken
