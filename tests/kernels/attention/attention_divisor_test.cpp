#include "kernels/attention/cpu/attention_divisor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foretoken::cpu {
namespace {

TEST(AttentionDivisor, AddsTheWeightOfTheHeadsSink) {
  const float sinks[] = {-3.0f, 5.0f, 2.0f, 200.0f, -200.0f};
  AttentionArgs a{};
  EXPECT_EQ(attention_divisor(a, 1, 2.0f, 1.5f), 1.5f) << "no sinks";
  a.sinks = sinks;
  for (const int head : {0, 1, 2}) {
    const double want = 1.5 + std::exp(double(sinks[head]) - 2.0);
    EXPECT_NEAR(attention_divisor(a, head, 2.0f, 1.5f), want, 1e-6 * want) << head;
  }
  EXPECT_EQ(attention_divisor(a, 2, 2.0f, 1.5f), 2.5f);
  EXPECT_TRUE(std::isinf(attention_divisor(a, 3, 2.0f, 1.5f)));
  EXPECT_EQ(attention_divisor(a, 4, 2.0f, 1.5f), 1.5f);
}

}  // namespace
}  // namespace foretoken::cpu
