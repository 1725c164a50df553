#include "kernels/attention/cpu/attention_lanes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/bfloat16.h"
#include "support/random_data.h"

namespace foretoken::cpu {
namespace {

// Each of them that this machine can run.
class AttentionLanesTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (const AttentionLanes& one : attention_lanes()) {
      if (one.name == GetParam()) lanes_ = &one;
    }
    if (lanes_ == nullptr) GTEST_SKIP() << "this processor has no " << GetParam();
  }
  const AttentionLanes* lanes_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(All, AttentionLanesTest, testing::Values("avx512", "avx2"),
                         [](const auto& test) { return test.param; });

std::vector<uint16_t> numbered(int count, int first) {
  std::vector<uint16_t> values(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) values[static_cast<size_t>(i)] = static_cast<uint16_t>(first + i);
  return values;
}

TEST_P(AttentionLanesTest, KeysBecomeColumns) {
  constexpr int kLaneDim = 96, kStride = 700;
  std::vector<std::vector<uint16_t>> rows;
  const uint16_t* keys[kKeysAtOnce];
  for (int i = 0; i < kKeysAtOnce; ++i) {
    rows.push_back(numbered(kLaneDim, 1000 * i + 1));
    keys[i] = i % 5 == 3 ? nullptr : rows.back().data();
  }
  std::vector<uint16_t> packed(3 * kStride, 7);
  lanes_->pack_keys(keys, kLaneDim, packed.data(), kStride);
  for (int pos = 0; pos < kKeysAtOnce; ++pos) {
    for (int d = 0; d < kLaneDim; ++d) {
      const size_t at = static_cast<size_t>(d / 32 * kStride + d % 32 / 2 * 32 + pos * 2 + d % 2);
      EXPECT_EQ(packed[at], keys[pos] == nullptr ? 0 : 1000 * pos + 1 + d) << pos << " " << d;
    }
  }
}

TEST_P(AttentionLanesTest, ValuesBecomePairs) {
  constexpr int kLaneDim = 48, kStride = 40;
  const std::vector<uint16_t> low = numbered(kLaneDim, 100), high = numbered(kLaneDim, 9000);
  std::vector<uint16_t> packed(3 * kStride, 7);
  EXPECT_TRUE(lanes_->pack_value_pair(low.data(), high.data(), kLaneDim, packed.data(), kStride));
  for (int d = 0; d < kLaneDim; ++d) {
    const size_t at = static_cast<size_t>(d / 16 * kStride + d % 16 * 2);
    EXPECT_EQ(packed[at], low[static_cast<size_t>(d)]);
    EXPECT_EQ(packed[at + 1], high[static_cast<size_t>(d)]);
  }
  EXPECT_TRUE(lanes_->pack_value_pair(nullptr, high.data(), kLaneDim, packed.data(), kStride));
  EXPECT_EQ(packed[0], 0);
  EXPECT_EQ(packed[1], 9000);
  std::vector<uint16_t> broken = high;
  for (const float value : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    broken[37] = bf16_from_float(value);
    EXPECT_FALSE(
        lanes_->pack_value_pair(broken.data(), low.data(), kLaneDim, packed.data(), kStride));
    EXPECT_FALSE(lanes_->pack_value_pair(nullptr, broken.data(), kLaneDim, packed.data(), kStride));
  }
}

TEST_P(AttentionLanesTest, WeightsAreExponentials) {
  std::vector<float> scores = random_floats(256, 3, 8.0f);
  for (const auto& [begin, end] :
       {std::pair{0, 256}, std::pair{0, 1}, std::pair{17, 40}, std::pair{255, 256}}) {
    std::vector<uint16_t> weights(256, 99);
    const SoftWeights soft = lanes_->soften(scores.data(), begin, end, 0, 256, weights.data());
    float max = scores[static_cast<size_t>(begin)];
    for (int i = begin; i < end; ++i) max = std::max(max, scores[static_cast<size_t>(i)]);
    EXPECT_EQ(soft.max, max);
    double sum = 0;
    for (int i = 0; i < 256; ++i) {
      const float weight = bf16_to_float(weights[static_cast<size_t>(i)]);
      const double want = std::exp(double(scores[static_cast<size_t>(i)]) - max);
      if (i < begin || i >= end) {
        EXPECT_EQ(weight, 0.0f);
      } else {
        EXPECT_NEAR(weight, want, want * 0.004 + 1e-37);
      }
      sum += weight;
    }
    EXPECT_NEAR(soft.sum, sum, sum * 1e-6);
  }
}

// What lies outside what a row sees, in scores or in how much is written, changes no bit.
TEST_P(AttentionLanesTest, WhatIsNotSeenDoesNotMatter) {
  std::vector<float> scores = random_floats(256, 4, 3.0f);
  std::vector<uint16_t> narrow(256, 0), wide(256, 0);
  const SoftWeights a = lanes_->soften(scores.data(), 70, 90, 64, 96, narrow.data());
  for (int i = 0; i < 256; ++i) {
    if (i < 70 || i >= 90) scores[static_cast<size_t>(i)] = i % 2 == 0 ? 1e30f : std::nanf("");
  }
  const SoftWeights b = lanes_->soften(scores.data(), 70, 90, 0, 256, wide.data());
  EXPECT_EQ(a.max, b.max);
  EXPECT_EQ(a.sum, b.sum);
  EXPECT_EQ(narrow, wide);
}

}  // namespace
}  // namespace foretoken::cpu
