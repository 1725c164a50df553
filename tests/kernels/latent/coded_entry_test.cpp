#include "kernels/latent/cpu/coded_entry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace foretoken {
namespace {

constexpr int kCodedDim = 152, kCodedRope = 8;  // two groups of codes, and one of 16

std::vector<float> coded_values() {
  std::vector<float> x;
  for (int i = 0; i < kCodedDim; ++i) {
    x.push_back(std::sin(static_cast<float>(i) * 1.7f) * (i < kCodedGroup ? 3.0f : 700.0f));
  }
  return x;
}

class CodedEntry : public testing::TestWithParam<DType> {
 protected:
  static EntryForm form() { return {KvFormat::kFp8, GetParam(), kCodedDim, kCodedRope}; }
  static std::vector<std::byte> stored(const std::vector<float>& x) {
    std::vector<std::byte> entry(static_cast<size_t>(form().bytes()));
    (GetParam() == DType::kF32 ? cpu::store_entry<float>
                               : cpu::store_entry<uint16_t>)(form(), x.data(), entry.data());
    return entry;
  }
  static std::vector<float> widened(const std::vector<std::byte>& entry) {
    std::vector<float> x(kCodedDim);
    (GetParam() == DType::kF32 ? cpu::widen_coded_entry<float>
                               : cpu::widen_coded_entry<uint16_t>)(form(), entry.data(), x.data());
    return x;
  }
};

// Three bits of mantissa behind the leading one, and an equal step below the smallest normal code.
TEST_P(CodedEntry, ElementsComeBackWithinHalfAStep) {
  const auto x = coded_values(), got = widened(stored(x));
  for (int group = 0; group < 3; ++group) {
    const int begin = group * kCodedGroup, end = std::min(begin + kCodedGroup, form().coded());
    float highest = 0;
    for (int i = begin; i < end; ++i) highest = std::max(highest, std::abs(x[size_t(i)]));
    const float least = coded_scale(coded_power(highest)) * 0x1p-9f;
    for (int i = begin; i < end; ++i) {
      const float own = x[size_t(i)];
      EXPECT_NEAR(got[size_t(i)], own, std::max(std::abs(own) / 16, least / 2)) << i;
    }
  }
  for (int i = form().coded(); i < kCodedDim; ++i) {
    const float own = x[size_t(i)];
    EXPECT_NEAR(got[size_t(i)], own, GetParam() == DType::kF32 ? 0 : std::abs(own) / 256) << i;
  }
}

TEST_P(CodedEntry, WhatCodesStandForIsKept) {
  const auto once = widened(stored(coded_values()));
  EXPECT_EQ(widened(stored(once)), once);
}

TEST_P(CodedEntry, NoNumberOfAGroupHidesOneThatIsNone) {
  auto x = coded_values();
  x[kCodedGroup + 3] = std::numeric_limits<float>::quiet_NaN();
  const auto got = widened(stored(x));
  EXPECT_FALSE(std::isnan(got[kCodedGroup - 1]));
  for (int i = kCodedGroup; i < 2 * kCodedGroup; ++i) EXPECT_TRUE(std::isnan(got[size_t(i)])) << i;
}

INSTANTIATE_TEST_SUITE_P(All, CodedEntry, testing::Values(DType::kF32, DType::kBF16));

}  // namespace
}  // namespace foretoken
