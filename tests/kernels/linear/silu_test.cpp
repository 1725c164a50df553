#include "kernels/linear/cpu/silu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace foretoken {
namespace {

TEST(PassSilu, IsTheSameForEveryLengthAndInPlace) {
  std::vector<float> from(19), all(19);
  for (size_t i = 0; i < from.size(); ++i) from[i] = 0.9f * static_cast<float>(i) - 8.0f;
  cpu::pass_silu(from.data(), all.data(), static_cast<int>(all.size()));
  for (size_t i = 0; i < from.size(); ++i) {
    const double x = from[i];
    EXPECT_NEAR(all[i], x / (1 + std::exp(-x)), 1e-6 * (1 + std::abs(x))) << i;
  }
  for (const size_t count : {1, 7, 8, 13}) {
    std::vector<float> own(from.begin(), from.begin() + static_cast<ptrdiff_t>(count));
    cpu::pass_silu(own.data(), own.data(), static_cast<int>(count));
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(own[i], all[i]) << count << " " << i;
  }
}

}  // namespace
}  // namespace foretoken
