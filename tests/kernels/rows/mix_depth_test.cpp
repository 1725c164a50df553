#include "kernels/rows/mix_depth.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr float kDepthEps = 1e-5f;

struct DepthCase {
  int size;
  int num_blocks;
};

class MixDepthTest : public RowOpTest, public testing::WithParamInterface<DepthCase> {};

// The mean of these rows of `size` numbers as the contract has it.
std::vector<double> mean_of(const std::vector<const float*>& values, const float* weights,
                            int size) {
  std::vector<double> shares;
  double sum = 0;
  for (const float* value : values) {
    double squares = 0, met = 0;
    for (int i = 0; i < size; ++i) {
      squares += double(value[i]) * value[i] / size;
      met += double(value[i]) * weights[i];
    }
    shares.push_back(std::exp(met / std::sqrt(squares + kDepthEps)));
    sum += shares.back();
  }
  std::vector<double> mean(static_cast<size_t>(size));
  for (size_t j = 0; j < values.size(); ++j) {
    for (int i = 0; i < size; ++i) mean[static_cast<size_t>(i)] += shares[j] / sum * values[j][i];
  }
  return mean;
}

TEST_P(MixDepthTest, MatchesDouble) {
  const auto [size, num_blocks] = GetParam();
  constexpr int kMaxRows = 4, kRows = 3, kBlockRows = 5;
  const auto residual = random_floats(size_t{kMaxRows} * size, 1, 2.0f);
  const auto delta = random_floats(size_t{kMaxRows} * size, 2);
  const auto blocks = random_floats(size_t{kBlockRows} * size * num_blocks, 3, 3.0f);
  const auto weights = random_floats(static_cast<size_t>(size), 4, 1 / std::sqrt(float(size)));
  for (const bool adds : {false, true}) {
    for (const bool in_place : {false, true}) {
      float* memory = to_device(residual);
      float* out = in_place ? memory : to_device(std::vector<float>(residual.size(), 7.0f));
      mix_depth(queue(),
                {counts(kRows), memory, adds ? to_device(delta) : nullptr, to_device(blocks),
                 to_device(weights), out, num_blocks, kBlockRows, kMaxRows, size, kDepthEps});
      const auto left = read(memory, residual.size());
      const auto mixed = read(out, residual.size());
      for (int r = 0; r < kRows; ++r) {
        std::vector<float> now(residual.begin() + r * size, residual.begin() + (r + 1) * size);
        for (int i = 0; adds && i < size; ++i) now[size_t(i)] += delta[size_t(r * size + i)];
        std::vector<const float*> values;
        for (int j = 0; j < num_blocks; ++j) {
          values.push_back(blocks.data() + (j * kBlockRows + r) * size);
        }
        values.push_back(now.data());
        const auto wanted = mean_of(values, weights.data(), size);
        for (int i = 0; i < size; ++i) {
          ASSERT_NEAR(mixed[size_t(r * size + i)], wanted[size_t(i)], 2e-5) << r << " " << i;
          if (!in_place) {
            ASSERT_EQ(left[size_t(r * size + i)], now[size_t(i)]);
          }
        }
      }
      for (size_t i = size_t{kRows} * size; i < residual.size(); ++i) {
        ASSERT_EQ(mixed[i], in_place ? residual[i] : 7.0f) << i;
      }
    }
  }
}

TEST_P(MixDepthTest, RowsAreBitEqualAloneAndInABatch) {
  const auto [size, num_blocks] = GetParam();
  constexpr int kRows = 3;
  const auto x = random_floats(size_t{kRows} * size, 5);
  const auto blocks = random_floats(size_t{kRows} * size * num_blocks, 6);
  float* weights = to_device(random_floats(static_cast<size_t>(size), 7));
  float* together = to_device(x);
  mix_depth(queue(), {counts(kRows), together, nullptr, to_device(blocks), weights, together,
                      num_blocks, kRows, kRows, size, kDepthEps});
  const auto all = read(together, x.size());
  for (int r = 0; r < kRows; ++r) {
    std::vector<float> own(x.begin() + r * size, x.begin() + (r + 1) * size), before;
    for (int j = 0; j < num_blocks; ++j) {
      const auto first = blocks.begin() + (j * kRows + r) * size;
      before.insert(before.end(), first, first + size);
    }
    float* row = to_device(own);
    mix_depth(queue(), {counts(1), row, nullptr, to_device(before), weights, row, num_blocks, 1, 1,
                        size, kDepthEps});
    const auto alone = read(row, own.size());
    ASSERT_EQ(std::memcmp(alone.data(), all.data() + r * size, own.size() * sizeof(float)), 0) << r;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, MixDepthTest,
                         testing::Values(DepthCase{5, 1}, DepthCase{64, 8}, DepthCase{1003, 3}));

}  // namespace
}  // namespace foretoken
