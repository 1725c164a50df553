#include "kernels/rows/mix_depth.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/sample_math.h"

namespace foretoken::cpu {
namespace {

constexpr int kDepthPiece = 512;  // columns at once

FT_HOT void add_depth_delta(float* x, const float* delta, int size) {
  for (int i = 0; i < size; ++i) x[i] += delta[i];
}

FT_HOT float meet(const float* x, const float* weights, int size) {
  Lanes sum = {};
  int i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Lanes values, factors;
    load(values, x + i);
    load(factors, weights + i);
    sum += values * factors;
  }
  float total = sum_lanes(sum);
  for (; i < size; ++i) total += x[i] * weights[i];
  return total;
}

FT_HOT float squares_of(const float* x, int size) { return sum_of_squares(x, size); }

FT_HOT void weigh(float* out, const float* x, float factor, int size) {
  for (int i = 0; i < size; ++i) out[i] += factor * x[i];
}

// Scores become weights whose sum is 1.
void take_shares(float* scores, int count) {
  const float highest = *std::max_element(scores, scores + count);
  float sum = 0;
  for (int j = 0; j < count; ++j) {
    scores[j] = sample_math::exp_nonpositive(scores[j] - highest);
    sum += scores[j];
  }
  for (int j = 0; j < count; ++j) scores[j] /= sum;
}

void mix_row(const MixDepthArgs& a, int64_t row) {
  const float* values[kMaxDepthBlocks + 1];
  float shares[kMaxDepthBlocks + 1];
  for (int j = 0; j < a.num_blocks; ++j) {
    values[j] = a.blocks + (int64_t{j} * a.block_rows + row) * a.size;
  }
  values[a.num_blocks] = a.residual + row * a.size;
  const int count = a.num_blocks + 1;
  for (int j = 0; j < count; ++j) {
    const float mean = squares_of(values[j], a.size) / static_cast<float>(a.size);
    shares[j] = meet(values[j], a.weights, a.size) / std::sqrt(mean + a.eps);
  }
  take_shares(shares, count);
  for (int column = 0; column < a.size; column += kDepthPiece) {
    const int size = std::min(kDepthPiece, a.size - column);
    float sums[kDepthPiece] = {};
    for (int j = 0; j < count; ++j) weigh(sums, values[j] + column, shares[j], size);
    std::copy_n(sums, size, a.out + row * a.size + column);
  }
}

}  // namespace

void mix_depth(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const MixDepthArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  for_each_row(pool, rows, 3 * int64_t{a.num_blocks + 1} * a.size, [&](int64_t row) {
    if (a.delta != nullptr)
      add_depth_delta(a.residual + row * a.size, a.delta + row * a.size, a.size);
    mix_row(a, row);
  });
}

}  // namespace foretoken::cpu
