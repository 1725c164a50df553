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

struct Coding {
  DType dtype;
  KvFormat format;
};

class CodedEntry : public testing::TestWithParam<Coding> {
 protected:
  static bool is_f32() { return GetParam().dtype == DType::kF32; }
  static EntryForm form() { return {GetParam().format, GetParam().dtype, kCodedDim, kCodedRope}; }
  // Between codes of a group, by its largest magnitude and that of the element.
  static float step(float highest, float own) {
    if (GetParam().format == KvFormat::kInt8) return highest / 127;
    const float least = coded_scale(coded_power(highest)) * 0x1p-9f;
    return std::max(std::abs(own) / 8, least);
  }
  static std::vector<std::byte> stored(const std::vector<float>& x) {
    std::vector<std::byte> entry(static_cast<size_t>(form().bytes()));
    (is_f32() ? cpu::store_entry<float> : cpu::store_entry<uint16_t>)(form(), x.data(),
                                                                      entry.data());
    return entry;
  }
  static std::vector<float> widened(const std::vector<std::byte>& entry) {
    std::vector<float> x(kCodedDim);
    (is_f32() ? cpu::widen_coded_entry<float>
              : cpu::widen_coded_entry<uint16_t>)(form(), entry.data(), x.data());
    return x;
  }
};

// Of floats, three bits of mantissa behind the leading one, and an equal step below the smallest
// normal code.
TEST_P(CodedEntry, ElementsComeBackWithinHalfAStep) {
  const auto x = coded_values(), got = widened(stored(x));
  for (int group = 0; group < 3; ++group) {
    const int begin = group * kCodedGroup, end = std::min(begin + kCodedGroup, form().coded());
    float highest = 0;
    for (int i = begin; i < end; ++i) highest = std::max(highest, std::abs(x[size_t(i)]));
    for (int i = begin; i < end; ++i) {
      const float own = x[size_t(i)];
      EXPECT_NEAR(got[size_t(i)], own, step(highest, own) * 0.50001f) << i;
    }
  }
  for (int i = form().coded(); i < kCodedDim; ++i) {
    const float own = x[size_t(i)];
    EXPECT_NEAR(got[size_t(i)], own, is_f32() ? 0 : std::abs(own) / 256) << i;
  }
}

TEST_P(CodedEntry, WhatCodesStandForIsKept) {
  const auto once = widened(stored(coded_values()));
  const auto twice = widened(stored(once));
  // Scales that are no powers of two are rounded.
  const float most = GetParam().format == KvFormat::kInt8 ? 1e-6f : 0;
  for (size_t i = 0; i < once.size(); ++i) {
    EXPECT_NEAR(twice[i], once[i], std::abs(once[i]) * most) << i;
  }
}

TEST_P(CodedEntry, NoNumberOfAGroupHidesOneThatIsNone) {
  auto x = coded_values();
  x[kCodedGroup + 3] = std::numeric_limits<float>::quiet_NaN();
  const auto got = widened(stored(x));
  EXPECT_FALSE(std::isnan(got[kCodedGroup - 1]));
  for (int i = kCodedGroup; i < 2 * kCodedGroup; ++i) EXPECT_TRUE(std::isnan(got[size_t(i)])) << i;
}

INSTANTIATE_TEST_SUITE_P(All, CodedEntry,
                         testing::Values(Coding{DType::kF32, KvFormat::kFp8},
                                         Coding{DType::kBF16, KvFormat::kFp8},
                                         Coding{DType::kF32, KvFormat::kInt8},
                                         Coding{DType::kBF16, KvFormat::kInt8}));

}  // namespace
}  // namespace foretoken
