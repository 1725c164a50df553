#include "engine/start/speculation_rules.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

SpeculativeConfig three_drafts() {
  SpeculativeConfig config;
  config.method = "ngram";
  config.num_speculative_tokens = 3;
  return config;
}

TEST(LengthModes, AreThoseOfThePolicyOrOfASchedule) {
  SpeculativeConfig config = three_drafts();
  EXPECT_EQ(length_mode(config).value(), LengthMode::kAdaptive);
  config.length_policy = "fixed";
  EXPECT_EQ(length_mode(config).value(), LengthMode::kFixed);
  config.num_speculative_tokens_per_batch_size = {{1, 2, 3}};
  EXPECT_EQ(length_mode(config).value(), LengthMode::kSchedule);
  config.length_policy = "off";
  EXPECT_FALSE(length_mode(config).ok());
  config.num_speculative_tokens_per_batch_size.clear();
  EXPECT_EQ(length_mode(config).value(), LengthMode::kOff);
  config.length_policy = "Fixed";
  EXPECT_EQ(length_mode(config).status().message(),
            "speculative config: length_policy 'Fixed' is unknown; use adaptive, fixed or off");
}

TEST(AcceptanceMethods, HaveTheNamesOfTheField) {
  SpeculativeConfig config = three_drafts();
  EXPECT_EQ(acceptance_method(config).value(), AcceptanceMethod::kCoupled);
  config.synthetic_acceptance_length = 2;
  EXPECT_FALSE(acceptance_method(config).ok()) << "rates without the rule that reads them";
  config.rejection_sample_method = "synthetic";
  EXPECT_EQ(acceptance_method(config).value(), AcceptanceMethod::kSynthetic);
  for (const AcceptanceMethod method : {AcceptanceMethod::kCoupled, AcceptanceMethod::kSynthetic}) {
    config.synthetic_acceptance_length = method == AcceptanceMethod::kSynthetic ? 2 : 0;
    config.rejection_sample_method = acceptance_method_name(method);
    EXPECT_EQ(acceptance_method(config).value(), method);
  }
}

TEST(SyntheticChances, AreThoseOfADraftGivenTheOnesBeforeIt) {
  SpeculativeConfig config = three_drafts();
  config.synthetic_acceptance_rates = {1, 0.5, 0.25};
  const auto chances = synthetic_chances(config);
  EXPECT_EQ(chances[0], UINT32_MAX);
  EXPECT_EQ(chances[1], 1u << 31);
  EXPECT_EQ(chances[2], 1u << 31);
  EXPECT_EQ(chances[3], 0u);
  config.synthetic_acceptance_rates = {0, 0, 0};
  EXPECT_EQ(synthetic_chances(config)[0], 0u);
  EXPECT_EQ(synthetic_chances(config)[1], 0u);
  config.synthetic_acceptance_rates = {0.75, 0.75, 0};
  EXPECT_EQ(synthetic_chances(config)[0], 3u << 30);
  EXPECT_EQ(synthetic_chances(config)[1], UINT32_MAX);
  EXPECT_EQ(synthetic_chances(config)[2], 0u);
}

TEST(SyntheticChances, OfAMeanLengthAreOnesAndTheRest) {
  SpeculativeConfig config = three_drafts();
  config.synthetic_acceptance_length = 2.5;
  const auto chances = synthetic_chances(config);
  EXPECT_EQ(chances[0], UINT32_MAX);
  EXPECT_EQ(chances[1], 1u << 31);
  EXPECT_EQ(chances[2], 0u);
  config.synthetic_acceptance_length = 1;
  EXPECT_EQ(synthetic_chances(config)[0], 0u);
  config.synthetic_acceptance_length = 4;
  EXPECT_EQ(synthetic_chances(config)[2], UINT32_MAX);
  EXPECT_EQ(synthetic_chances(config)[3], 0u);
}

}  // namespace
}  // namespace foretoken
