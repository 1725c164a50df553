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
  EXPECT_NE(said_of("medusa", rounded).find("quantization fp8"), std::string::npos);
  const auto parts = [](SpeculativeConfig& config) { config.draft_tensor_parallel_size = 2; };
  EXPECT_NE(said_of("eagle", parts).find("draft_tensor_parallel_size 2"), std::string::npos);
}

// A method that is not known yet is judged when it is.
TEST(DrafterParts, TheEngineAloneIsJudgedFirst) {
  EXPECT_TRUE(check_combination({}, {SpeculativeConfig{}}).ok());
  EXPECT_FALSE(check_combination({.drafts = true, .max_rows = 1}, {SpeculativeConfig{}}).ok());
}

}  // namespace
}  // namespace foretoken
