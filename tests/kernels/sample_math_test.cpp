#include "kernels/sample_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace foretoken::sample_math {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(SampleMath, KeysHaveTheOrderOfFloats) {
  const float values[] = {-kInf, -3e38f, -1.0f, -1e-45f, 0.0f, 1e-45f, 1.0f, 3e38f};
  for (float a : values) {
    for (float b : values) EXPECT_EQ(a < b, ordered_key(a) < ordered_key(b)) << a << " " << b;
  }
  EXPECT_EQ(ordered_key(-0.0f), ordered_key(0.0f));
  EXPECT_EQ(ordered_key(-kInf), kKeyOfMinusInf);
}

TEST(SampleMath, InvalidLogits) {
  EXPECT_TRUE(is_invalid_logit(std::numeric_limits<float>::quiet_NaN()));
  EXPECT_TRUE(is_invalid_logit(kInf));
  EXPECT_FALSE(is_invalid_logit(-kInf));
  EXPECT_FALSE(is_invalid_logit(3e38f));
}

TEST(SampleMath, ExpIsWithinTwoUlp) {
  for (float x = 0.0f; x > -87.0f; x -= 0.00371f) {
    const double want = std::exp(double(x));
    ASSERT_NEAR(exp_nonpositive(x), want, want * 2.5e-7) << x;
  }
  EXPECT_EQ(exp_nonpositive(0.0f), 1.0f);
  EXPECT_EQ(exp_nonpositive(-87.5f), 0.0f);
  EXPECT_EQ(exp_nonpositive(-kInf), 0.0f);
}

TEST(SampleMath, ExponentialVariateMatchesLog1p) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    const uint32_t word = i < 64    ? static_cast<uint32_t>(i)
                          : i < 128 ? ~uint32_t(i - 64)
                                    : random();
    const float v = unit_from_word(word);
    const double exact = (double(word) + 0.5) / 4294967296.0;
    ASSERT_NEAR(v, std::min(exact, 1 - std::ldexp(1.0, -24)), exact * 1.2e-7);
    ASSERT_GT(v, 0.0f);
    ASSERT_LT(v, 1.0f);
    const double want = -std::log1p(-double(v));
    ASSERT_NEAR(exponential_from_unit(v), want, want * 5e-7) << word;
  }
}

// Known answers of the generator's authors (Random123, kat_vectors).
TEST(SampleMath, NoiseIsPhilox) {
  const Philox4 zero = noise_words(0, 0, 0, 0, 0);
  const uint32_t want_zero[4] = {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
  const Philox4 pi =
      noise_words(0x243f6a88u, static_cast<int32_t>(0x85a308d3u), static_cast<int32_t>(0x13198a2eu),
                  0x03707344u, 0x299f31d0a4093822u);
  const uint32_t want_pi[4] = {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(zero.v[i], want_zero[i]);
    EXPECT_EQ(pi.v[i], want_pi[i]);
  }
}

TEST(SampleMath, MassIsRounded) {
  EXPECT_EQ(mass_of(1.0f), 1u << 30);
  EXPECT_EQ(mass_of(0.0f), 0u);
  EXPECT_EQ(mass_of(std::ldexp(1.4f, -30)), 1u);
  EXPECT_EQ(mass_of(std::ldexp(1.6f, -30)), 2u);
  EXPECT_EQ(mass_of(std::ldexp(8388609.0f, -30)), 8388609u);
}

TEST(SampleMath, FineMassIsRounded) {
  const auto mass = [](float w) {
    const FineMass parts = fine_mass_of(w);
    return (uint64_t{parts.high} << 20) + parts.low;
  };
  EXPECT_EQ(mass(1.0f), uint64_t{1} << 40);
  EXPECT_EQ(mass(0.0f), 0u);
  EXPECT_EQ(mass(std::ldexp(1.4f, -40)), 1u);
  EXPECT_EQ(mass(std::ldexp(1.6f, -40)), 2u);
  std::mt19937 random(2);
  for (int i = 0; i < 100000; ++i) {
    const float w = std::ldexp(1.0f + float(random() % 8388608u) / 8388608.0f,
                               -1 - static_cast<int>(random() % 44));
    ASSERT_NEAR(double(mass(w)), std::ldexp(double(w), 40), 0.501) << w;
  }
}

TEST(SampleMath, LogOfFineMass) {
  EXPECT_EQ(log_of_fine_mass(uint64_t{1} << 40), 0.0);
  EXPECT_NEAR(log_of_fine_mass(uint64_t{3} << 50), std::log(3072.0), 1e-12);
  EXPECT_EQ(logprob_of(-kInf, 2.0f, 1.0), -kInf);
  EXPECT_EQ(logprob_of(1.0f, 2.0f, 0.5), -1.5f);
}

TEST(SampleMath, KeysCanBeTurnedBack) {
  for (const float x : {-kInf, -3e38f, -1.0f, -1e-45f, 0.0f, 1e-45f, 1.0f, 3e38f, kInf}) {
    EXPECT_EQ(float_of_key(ordered_key(x)), x);
  }
}

TEST(SampleMath, TopPMass) {
  EXPECT_EQ(top_p_mass(0.5f, 10), 5u);
  EXPECT_EQ(top_p_mass(0.5f, 11), 6u);
  EXPECT_EQ(top_p_mass(0.0f, 11), 1u);
  EXPECT_EQ(top_p_mass(1.0f, uint64_t{1} << 48), uint64_t{1} << 48);
}

}  // namespace
}  // namespace foretoken::sample_math
