#include "model/layer/attention/head_difference.h"

#include <algorithm>

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

constexpr int32_t kPairs = 2, kSize = 16;
constexpr GqaSpec kPaired = {.num_heads = 2 * kPairs,
                             .num_kv_heads = 1,
                             .head_dim = kSize,
                             .inputs = 8,
                             .lambda_init = 0.25f};

class HeadDifferenceTest : public test::PartTest {};

TEST_F(HeadDifferenceTest, SecondHeadsAreTakenFromFirstOnes) {
  double sums[2] = {0, 0};
  for (int i = 0; i < 2; ++i) {
    const std::string index = std::to_string(i + 1);
    const auto& q = add("lambda_q" + index, {kSize / 2});
    const auto& k = add("lambda_k" + index, {kSize / 2});
    for (size_t j = 0; j < kSize / 2; ++j) sums[i] += double(q.values[j]) * k.values[j];
  }
  const double lambda = std::exp(sums[0]) - std::exp(sums[1]) + 0.25;
  const auto difference = load_part<HeadDifference>(
      [](PartLoader& loader, HeadDifference* out) { return out->load(loader, "", kPaired); });
  EXPECT_EQ(unused_, "");
  constexpr size_t kWidth = kPairs * kSize;
  std::vector<double> x;
  random_rows(1, 2 * kWidth, &x);
  std::vector<float> attended(x.begin(), x.end());
  float* rows = to_device(attended);
  difference.take(rows_of(1), DType::kF32, rows,
                  {allocate<float>(kWidth), allocate<float>(kWidth)});
  std::vector<double> want(kWidth);
  for (size_t pair = 0; pair < kPairs; ++pair) {
    double square = 0;
    for (size_t i = 0; i < kSize; ++i) {
      const double* first = &x[pair * 2 * kSize + i];
      double& to = want[pair * kSize + i] = first[0] - lambda * first[kSize];
      square += to * to / kSize;
    }
    for (size_t i = 0; i < kSize; ++i) want[pair * kSize + i] *= 0.75 / std::sqrt(square + 1e-5);
  }
  expect_near(rows, want);
}

}  // namespace
}  // namespace foretoken
