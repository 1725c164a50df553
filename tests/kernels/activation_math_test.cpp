#include "kernels/activation_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace foretoken {
namespace {

// The functions under test are always inlined: no pointers to them.
float tanh_of(float x) { return activation_math::tanh_of(x); }
float sigmoid(float x) { return activation_math::sigmoid(x); }
float gelu_share(float x) { return activation_math::gelu_share(x); }
float gelu_tanh_share(float x) { return activation_math::gelu_tanh_share(x); }
float soft_capped(float x, float cap) { return activation_math::soft_capped(x, cap, 1 / cap); }

// Largest relative error of f against want over [-limit, limit].
template <class F, class Want>
double largest_error(float limit, F f, Want want) {
  double largest = 0;
  for (int i = -200000; i <= 200000; ++i) {
    const float x = limit * static_cast<float>(i) / 200000;
    const double exact = want(double(x));
    if (exact == 0) continue;
    largest = std::max(largest, std::abs(f(x) / exact - 1));
  }
  return largest;
}

double normal_cdf(double x) { return std::erfc(-x * std::sqrt(0.5)) / 2; }

double gelu_tanh_share_exact(double x) {
  return (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))) / 2;
}

TEST(ActivationMath, StaysNearTheExactFunctions) {
  EXPECT_LT(largest_error(0.01f, tanh_of, [](double x) { return std::tanh(x); }), 3e-7);
  EXPECT_LT(largest_error(12.0f, tanh_of, [](double x) { return std::tanh(x); }), 3e-7);
  EXPECT_LT(largest_error(80.0f, sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }), 5e-7);
  EXPECT_LT(largest_error(4.0f, gelu_share, normal_cdf), 2e-6);
  EXPECT_LT(largest_error(13.0f, gelu_share, normal_cdf), 8e-6);
  // Its own formula loses all digits below -5 or so, where the share is 1e-8.
  EXPECT_LT(largest_error(4.0f, gelu_tanh_share, gelu_tanh_share_exact), 2e-6);
}

TEST(ActivationMath, EndsAndNaN) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(tanh_of(infinity), 1.0f);
  EXPECT_EQ(tanh_of(-infinity), -1.0f);
  EXPECT_EQ(tanh_of(0.0f), 0.0f);
  EXPECT_EQ(soft_capped(1e30f, 30.0f), 30.0f);
  EXPECT_NEAR(soft_capped(0.5f, 30.0f), 30 * std::tanh(0.5 / 30), 1e-6);
  for (const auto share : {sigmoid, gelu_share, gelu_tanh_share}) {
    EXPECT_EQ(share(1e30f), 1.0f);
    EXPECT_EQ(share(-1e30f), 0.0f);
    EXPECT_EQ(share(infinity), 1.0f);
    EXPECT_EQ(share(-infinity), 0.0f);
    EXPECT_NEAR(share(0.0f), 0.5f, 3e-7f);
    EXPECT_TRUE(std::isnan(share(nan)));
  }
  EXPECT_TRUE(std::isnan(tanh_of(nan)));
}

}  // namespace
}  // namespace foretoken
