#include "kernels/experts/cpu/expert_sum.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken::cpu {
namespace {

struct Shared {
  const float* shared;
  const float* shared_gate;
  int hidden;
};

std::vector<float> beginning(const Shared& args, int64_t row, int col, int n) {
  std::vector<float> sum(static_cast<size_t>(n), 9.0f);
  begin_expert_sum(args, args.hidden, row, col, n, sum.data());
  return sum;
}

TEST(ExpertSum, BeginsWithTheSharedExpert) {
  const std::vector<float> shared = {1, 2, 3, 4, 5, 6};
  const std::vector<float> gate = {0, 0};
  EXPECT_EQ(beginning({nullptr, nullptr, 3}, 1, 0, 3), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(beginning({shared.data(), nullptr, 3}, 1, 1, 2), (std::vector<float>{5, 6}));
  EXPECT_EQ(beginning({shared.data(), gate.data(), 3}, 0, 0, 3),
            (std::vector<float>{0.5f, 1.0f, 1.5f}));
}

}  // namespace
}  // namespace foretoken::cpu
