#include "kernels/attention/cpu/int8_entry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support/random_data.h"

namespace foretoken::cpu {
namespace {

std::vector<int8_t> entry_of(const std::vector<float>& x) {
  std::vector<int8_t> entry(x.size() + sizeof(float), int8_t{99});
  store_int8_entry(x.data(), static_cast<int>(x.size()), entry.data());
  return entry;
}

float scale_of(const std::vector<int8_t>& entry) {
  return int8_entry_scale(entry.data(), static_cast<int>(entry.size() - sizeof(float)));
}

TEST(Int8Entry, EveryElementIsWithinHalfAStep) {
  for (const size_t dim : {1u, 15u, 16u, 17u, 64u, 80u, 512u}) {
    const std::vector<float> x = random_floats(dim, dim, 3.0f);
    const std::vector<int8_t> entry = entry_of(x);
    float highest = 0;
    for (const float value : x) highest = std::max(highest, std::abs(value));
    EXPECT_FLOAT_EQ(scale_of(entry), highest / 127) << dim;
    int most = 0;
    for (size_t i = 0; i < dim; ++i) {
      EXPECT_NEAR(x[i], scale_of(entry) * entry[i], scale_of(entry) * 0.50001f) << dim;
      most = std::max(most, std::abs(int{entry[i]}));
    }
    EXPECT_EQ(most, 127) << dim;
  }
}

TEST(Int8Entry, BytesDoNotDependOnWhereTheyLie) {
  const std::vector<float> x = random_floats(40, 1);
  const std::vector<int8_t> entry = entry_of(x);
  std::vector<int8_t> shifted(entry.size() + 3);
  store_int8_entry(x.data(), 40, shifted.data() + 3);
  EXPECT_TRUE(std::equal(entry.begin(), entry.end(), shifted.begin() + 3));
}

TEST(Int8Entry, WhatIsNotFiniteMakesTheScaleNan) {
  for (const float bad : {std::nanf(""), -std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    for (const size_t place : {0u, 15u, 33u}) {
      std::vector<float> x = random_floats(34, 2);
      x[place] = bad;
      const std::vector<int8_t> entry = entry_of(x);
      EXPECT_TRUE(std::isnan(scale_of(entry)));
      EXPECT_EQ(entry[3], 0) << "codes stay finite";
    }
  }
}

TEST(Int8Entry, WhatIsTinyIsZero) {
  for (const float tiny : {0.0f, 1e-31f, 1e-45f}) {
    const std::vector<int8_t> entry = entry_of(std::vector<float>(20, tiny));
    EXPECT_EQ(scale_of(entry), 0.0f);
    EXPECT_EQ(entry[19], 0);
  }
  EXPECT_EQ(entry_of(std::vector<float>(20, 2e-30f))[19], 127);
  EXPECT_EQ(entry_of({3e38f, -3.4e38f, 0})[1], -127);
}

TEST(Int8Entry, CodesOfSixteenBits) {
  const std::vector<float> x = random_floats(50, 3);
  const CodeScale found = code_scale(x.data(), 50, 32767.0f);
  std::vector<int16_t> codes(50);
  store_codes(x.data(), 50, found.inverse, codes.data());
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(x[i], found.scale * codes[i], found.scale * 0.51f);
  }
}

}  // namespace
}  // namespace foretoken::cpu
