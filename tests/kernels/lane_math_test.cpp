#include "kernels/cpu/lane_math.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "kernels/activation_math.h"
#include "kernels/sample_math.h"

namespace foretoken::cpu {
namespace {

// Bits of each lane of a vector against a scalar function of the same lane of the input.
template <class Vector, class Scalar>
void expect_bits(const Vector& got, const Scalar* want) {
  EXPECT_EQ(std::memcmp(&got, want, sizeof got), 0);
}

TEST(LaneMath, HasTheBitsOfTheScalarFunctions) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> exponent(-90.0f, 0.0f);
  for (int round = 0; round < 5000; ++round) {
    Octet x, got;
    OctetU32 words, integers;
    float want[kOctet];
    uint32_t want_integers[kOctet];
    for (int i = 0; i < kOctet; ++i) {
      x[i] = exponent(random);
      words[i] = round == 0 ? static_cast<uint32_t>(i) : round == 1 ? ~uint32_t(i) : random();
    }
    if (round == 0) x[0] = -std::numeric_limits<float>::infinity();
    if (round == 0) x[1] = -0.0f;
    exp_nonpositive(got, x);
    for (int i = 0; i < kOctet; ++i) want[i] = sample_math::exp_nonpositive(x[i]);
    expect_bits(got, want);
    masses_of(integers, got);
    for (int i = 0; i < kOctet; ++i) want_integers[i] = sample_math::mass_of(want[i]);
    expect_bits(integers, want_integers);
    OctetU32 low;
    uint32_t want_low[kOctet];
    fine_masses_of(integers, low, got);
    for (int i = 0; i < kOctet; ++i) {
      const sample_math::FineMass mass = sample_math::fine_mass_of(want[i]);
      want_integers[i] = mass.high;
      want_low[i] = mass.low;
    }
    expect_bits(integers, want_integers);
    expect_bits(low, want_low);
    ordered_keys(integers, x);
    for (int i = 0; i < kOctet; ++i) want_integers[i] = sample_math::ordered_key(x[i]);
    expect_bits(integers, want_integers);
    exponential_from_words(got, words);
    for (int i = 0; i < kOctet; ++i) {
      want[i] = sample_math::exponential_from_unit(sample_math::unit_from_word(words[i]));
    }
    expect_bits(got, want);
  }
}

TEST(LaneMath, HasTheBitsOfTheActivations) {
  std::mt19937 random(2);
  for (const float width : {0.5f, 1.0f, 8.0f, 1e30f}) {
    std::uniform_real_distribution<float> uniform(-width, width);
    for (int round = 0; round < 2000; ++round) {
      Octet x, got;
      float want[kOctet];
      const auto expect_same = [&](float (*scalar)(float)) {
        for (int i = 0; i < kOctet; ++i) want[i] = scalar(x[i]);
        expect_bits(got, want);
      };
      for (int i = 0; i < kOctet; ++i) x[i] = uniform(random);
      if (round == 0) x = Octet{0.0f, -0.0f, 0.625f, -0.625f, 1e-30f, -1e-30f, 88.0f, -88.0f};
      tanh_of(got, x);
      expect_same([](float v) { return activation_math::tanh_of(v); });
      sigmoid(got, x);
      expect_same([](float v) { return activation_math::sigmoid(v); });
      gelu_share(got, x);
      expect_same([](float v) { return activation_math::gelu_share(v); });
      gelu_tanh_share(got, x);
      expect_same([](float v) { return activation_math::gelu_tanh_share(v); });
      soft_capped(got, x, 50.0f, 0.02f);
      expect_same([](float v) { return activation_math::soft_capped(v, 50.0f, 0.02f); });
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu
