#include "draft/drafter_parts.h"

#include <gtest/gtest.h>

#include <string>

namespace foretoken {
namespace {

std::string said_of(const char* method, auto change) {
  SpeculativeConfig config;
  config.method = method;
  change(config);
  return check_combination({.num_ranks = 4}, {config}).message();
}

TEST(DrafterParts, ARowAndItsConfigurationAreJudgedByTheRules) {
  const auto nothing = [](SpeculativeConfig&) {};
  for (const DrafterEntry& entry : drafters()) EXPECT_EQ(said_of(entry.name, nothing), "");
  const auto other = [](SpeculativeConfig& config) { config.use_heterogeneous_vocab = true; };
  EXPECT_EQ(said_of("draft_model", other), "");
  EXPECT_NE(said_of("eagle", other).find("use_heterogeneous_vocab"), std::string::npos);
  const auto rounded = [](SpeculativeConfig& config) { config.quantization = "fp8"; };
  EXPECT_EQ(said_of("eagle", rounded), "");
  EXPECT_EQ(said_of("medusa", rounded), "");
  const auto parts = [](SpeculativeConfig& config) { config.draft_tensor_parallel_size = 2; };
  EXPECT_NE(said_of("eagle", parts).find("draft_tensor_parallel_size 2"), std::string::npos);
}

TEST(DrafterParts, ListsAndFieldsOfTheEngineAreJudgedBesideEachOther) {
  SpeculativeConfig eagle, ngram;
  eagle.method = "eagle";
  ngram.method = "ngram";
  EXPECT_TRUE(check_combination({}, {eagle, ngram}).ok()) << "no list";
  eagle.leads = true;
  EXPECT_NE(check_combination({}, {eagle, ngram}).message().find("'eagle' always drafts"),
            std::string::npos);
  ngram.leads = true;
  eagle.leads = false;
  EXPECT_TRUE(check_combination({}, {ngram, eagle}).ok());
  eagle.synthetic_acceptance_length = 2;
  EXPECT_NE(check_combination({}, {ngram, eagle})
                .message()
                .find("synthetic_acceptance_length differs from the first drafter's"),
            std::string::npos);
}

TEST(DrafterParts, FieldsWithoutUseAreNamed) {
  const auto vocab = [](SpeculativeConfig& config) { config.draft_vocab_size = 8; };
  EXPECT_EQ(said_of("eagle", vocab), "");
  EXPECT_NE(said_of("suffix", vocab).find("draft_vocab_size does nothing with method suffix"),
            std::string::npos);
  const auto others = [](SpeculativeConfig& config) { config.prompt_lookup_max = 3; };
  EXPECT_EQ(said_of("ngram", others), "");
  EXPECT_NE(said_of("mtp", others).find("it belongs to method ngram"), std::string::npos);
  const auto itself = [](SpeculativeConfig& config) { config.model = "[ngram]"; };
  EXPECT_EQ(said_of("ngram", itself), "") << "vLLM's way to name it";
}

// A method that is not known yet is judged when it is.
TEST(DrafterParts, TheEngineAloneIsJudgedFirst) {
  EXPECT_TRUE(check_combination({}, {SpeculativeConfig{}}).ok());
  EXPECT_FALSE(check_combination({.drafts = true, .max_rows = 1}, {SpeculativeConfig{}}).ok());
}

}  // namespace
}  // namespace foretoken
