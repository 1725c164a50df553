#include "kernels/cpu/lane_pair.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace foretoken::cpu {
namespace {

// What the loops of products and attention do with lanes: sums by lane, and their total.
template <class V, class T>
std::array<float, kLanes + 2> sums_of(const std::vector<float>& a, const std::vector<T>& b) {
  V by_lane = {}, by_one = {};
  for (size_t i = 0; i + kLanes <= a.size(); i += kLanes) {
    V left, right;
    load(left, a.data() + i);
    load(right, b.data() + i);
    add_product(by_lane, left, right);
    add_product(by_one, right, a[i]);
  }
  std::array<float, kLanes + 2> sums;
  store(sums.data(), by_lane);
  sums[kLanes] = sum_lanes(by_lane);
  sums[kLanes + 1] = sum_lanes(by_one);
  return sums;
}

template <class T>
void expect_bits_of_lanes(const std::vector<float>& a, const std::vector<T>& b) {
  const auto lanes = sums_of<Lanes>(a, b);
  const auto pairs = sums_of<LanePair>(a, b);
  EXPECT_EQ(std::memcmp(lanes.data(), pairs.data(), sizeof lanes), 0);
  EXPECT_NE(pairs[kLanes], 0);
}

TEST(LanePair, HasTheBitsOfLanes) {
  std::vector<float> a(40 * kLanes), b(a.size());
  std::vector<uint16_t> halves(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i % 37) / 7 - 2.3f;
    b[i] = 1.0f / (1.0f + static_cast<float>(i % 101));
    halves[i] = bf16_from_float(b[i]);
  }
  expect_bits_of_lanes(a, b);
  expect_bits_of_lanes(a, halves);
}

}  // namespace
}  // namespace foretoken::cpu
