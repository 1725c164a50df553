#include "kernels/cpu/lane_math.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

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

}  // namespace
}  // namespace foretoken::cpu
