#include "kernels/quant/cpu/quant_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/random_data.h"

namespace foretoken::cpu {
namespace {

TEST(QuantRows, StepsHaveTheirOwnScales) {
  std::vector<float> x = random_floats(96, 1, 3.0f);
  std::fill_n(x.begin() + 32, 32, 0.0f);
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const TypedData typed = typed_data(x, dtype);
    QuantStep steps[3 * 2];
    quantize_row(typed.data(), dtype, 96, 2, steps);
    for (int s = 0; s < 3; ++s) {
      const QuantStep& step = steps[2 * s];
      float highest = 0;
      int sums[2] = {};
      for (int i = 0; i < 32; ++i) {
        highest = std::max(highest, std::abs(typed.values[static_cast<size_t>(32 * s + i)]));
        sums[i / 16] += step.codes[i];
      }
      EXPECT_FLOAT_EQ(step.scale, highest / 127);
      for (int i = 0; i < 32; ++i) {
        EXPECT_NEAR(step.codes[i] * step.scale, typed.values[static_cast<size_t>(32 * s + i)],
                    step.scale * 0.5001F);
      }
      EXPECT_EQ(step.scaled_sum, step.scale * static_cast<float>(sums[0] + sums[1]));
      EXPECT_EQ(step.minus_middle4, -8 * (sums[0] + sums[1]));
      EXPECT_EQ(step.minus_middle8, -128 * (sums[0] + sums[1]));
      EXPECT_EQ(step.minus_middle6[0], -32 * sums[0]);
      EXPECT_EQ(step.minus_middle6[1], -32 * sums[1]);
    }
  }
}

TEST(QuantRows, ValuesThatAreNoNumbersStayVisible) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    std::vector<float> x = random_floats(64, 2);
    x[40] = bad;
    QuantStep steps[2];
    quantize_row(x.data(), DType::kF32, 64, 1, steps);
    EXPECT_FALSE(std::isnan(steps[0].scale));
    EXPECT_TRUE(std::isnan(steps[1].scale));
  }
  const std::vector<float> tiny(32, 1e-38F);
  QuantStep step;
  quantize_row(tiny.data(), DType::kF32, 32, 1, &step);
  EXPECT_EQ(step.scale, 0);
  EXPECT_EQ(step.codes[5], 0);
}

// A row has the same steps in any block, whoever quantises it.
TEST(QuantRows, BlocksOfRows) {
  constexpr int kRows = 77, kDepth = 1024;
  const std::vector<float> x = random_floats(size_t{kRows} * kDepth, 3);
  reserve_quant_rows(kDepth);
  for (const int threads : {1, 3}) {
    CpuPool pool(threads);
    for (const int block_rows : {4, 8}) {
      const QuantRows rows = quantize_rows(pool, x.data(), DType::kF32, kRows, kDepth, block_rows);
      ASSERT_EQ(rows.num_steps, kDepth / 32);
      for (int r = 0; r < kRows; ++r) {
        std::vector<QuantStep> want(kDepth / 32);
        quantize_row(x.data() + r * kDepth, DType::kF32, kDepth, 1, want.data());
        const int block = r / block_rows;
        const int stride = std::min(block_rows, kRows - block * block_rows);
        ASSERT_EQ(rows.rows_of_block(block), stride);
        for (int s = 0; s < kDepth / 32; ++s) {
          const QuantStep& got = rows.block(block)[s * stride + r % block_rows];
          ASSERT_EQ(std::memcmp(&got, &want[static_cast<size_t>(s)], sizeof got), 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu
