#include "model/config/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace foretoken {
namespace {

// tests/model/decoder_test.cpp holds each kind against transformers; here stand their properties.

RopeConfig config_of(RopeType type) {
  RopeConfig config;
  config.type = type;
  config.rotary_dim = 32;
  config.original_context = 512;
  config.factor = 4;
  return config;
}

std::vector<float> frequencies(const RopeConfig& config, int32_t max_model_len = 1024) {
  return make_rope_table(config, max_model_len).inv_freq;
}

const std::vector<float> kPlain = frequencies(config_of(RopeType::kDefault));

TEST(RopeTable, DefaultIsAPowerOfTheta) {
  ASSERT_EQ(kPlain.size(), 16u);
  for (size_t i = 0; i < kPlain.size(); ++i) {
    EXPECT_NEAR(kPlain[i] * std::pow(10000.0, double(i) / 16), 1, 1e-6);
  }
  EXPECT_EQ(make_rope_table(config_of(RopeType::kDefault), 9).scaling, 1);
}

TEST(RopeTable, ProportionalLeavesTheRestStanding) {
  RopeConfig config = config_of(RopeType::kProportional);
  config.factor = 1;
  config.turning_pairs = 5;
  const auto some = frequencies(config);
  ASSERT_EQ(some.size(), kPlain.size());
  for (size_t i = 0; i < kPlain.size(); ++i) EXPECT_EQ(some[i], i < 5 ? kPlain[i] : 0) << i;
}

TEST(RopeTable, HeadsSideBySideTurnAlike) {
  RopeConfig config = config_of(RopeType::kDefault);
  config.rotary_dim *= 2;
  config.copies = 2;
  std::vector<float> twice = kPlain;
  twice.insert(twice.end(), kPlain.begin(), kPlain.end());
  EXPECT_EQ(frequencies(config), twice);
}

TEST(RopeTable, LinearSlowsEverything) {
  const auto slowed = frequencies(config_of(RopeType::kLinear));
  for (size_t i = 0; i < kPlain.size(); ++i) EXPECT_EQ(slowed[i], kPlain[i] / 4);
}

TEST(RopeTable, DynamicDependsOnTheLongestSequence) {
  const RopeConfig config = config_of(RopeType::kDynamic);
  EXPECT_EQ(frequencies(config, 100), kPlain);
  EXPECT_EQ(frequencies(config, 512), kPlain);
  const auto longer = frequencies(config, 1024), longest = frequencies(config, 2048);
  EXPECT_EQ(longer[0], 1);
  for (size_t i = 1; i < kPlain.size(); ++i) {
    EXPECT_LT(longer[i], kPlain[i]);
    EXPECT_LT(longest[i], longer[i]);
  }
  // The slowest wave is stretched by exactly factor * length / original - (factor - 1).
  EXPECT_NEAR(kPlain[15] / longer[15], 5, 1e-4);
}

TEST(RopeTable, LongropeTakesTheShortOrTheLongFactors) {
  RopeConfig config = config_of(RopeType::kLongrope);
  config.short_factor.assign(16, 2);
  config.long_factor.assign(16, 8);
  config.attention_factor = 1.25;
  EXPECT_FLOAT_EQ(frequencies(config, 512)[3], kPlain[3] / 2);
  EXPECT_FLOAT_EQ(frequencies(config, 513)[3], kPlain[3] / 8);
  EXPECT_EQ(make_rope_table(config, 512).scaling, 1.25f);
}

TEST(RopeTable, FormsForLongTextsAreSaid) {
  RopeConfig config = config_of(RopeType::kLongrope);
  config.short_factor.assign(16, 1);
  config.long_factor.assign(16, 2);
  EXPECT_EQ(long_form_note(config, 512), "");
  const std::string note = long_form_note(config, 1024);
  EXPECT_NE(note.find("--max-model-len 512"), std::string::npos) << note;
  config.long_factor = config.short_factor;
  EXPECT_EQ(long_form_note(config, 1024), "");
  EXPECT_NE(long_form_note(config_of(RopeType::kDynamic), 1024).find("dynamic"), std::string::npos);
  EXPECT_EQ(long_form_note(config_of(RopeType::kYarn), 1024), "");
}

TEST(RopeTable, Llama3KeepsShortWavesAndSlowsLongOnes) {
  const auto mixed = frequencies(config_of(RopeType::kLlama3));
  for (size_t i = 0; i < kPlain.size(); ++i) {
    const double wave = 2 * std::numbers::pi / kPlain[i];
    if (wave < 512.0 / 4) {
      EXPECT_EQ(mixed[i], kPlain[i]);
    }
    if (wave > 512) {
      EXPECT_EQ(mixed[i], kPlain[i] / 4);
    }
    EXPECT_LE(mixed[i], kPlain[i]);
    EXPECT_GE(mixed[i], kPlain[i] / 4);
  }
}

TEST(RopeTable, YarnGoesFromKeptToSlowed) {
  RopeConfig config = config_of(RopeType::kYarn);
  config.attention_factor = 1.5;
  const RopeTable table = make_rope_table(config, 64);
  EXPECT_EQ(table.scaling, 1.5f);
  EXPECT_EQ(table.inv_freq[0], kPlain[0]);
  EXPECT_FLOAT_EQ(table.inv_freq[15], kPlain[15] / 4);
  for (size_t i = 1; i < kPlain.size(); ++i) {
    EXPECT_LE(table.inv_freq[i] / kPlain[i], table.inv_freq[i - 1] / kPlain[i - 1] * 1.000001f);
  }
  config.truncate = false;
  EXPECT_NE(frequencies(config), table.inv_freq);
}

}  // namespace
}  // namespace foretoken
