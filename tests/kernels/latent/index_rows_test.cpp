#include "kernels/latent/index_rows.h"

#include <algorithm>
#include <cmath>

#include "support/row_ops.h"

namespace foretoken {
namespace {

class IndexRowsTest : public RowOpTest, public testing::WithParamInterface<DType> {};

TEST_P(IndexRowsTest, NormsKeysTurnsFrontsAndStores) {
  constexpr int kMaxRows = 5, kRows = 4, kHeads = 3, kDim = 48, kRope = 16, kEntries = 16;
  constexpr float kEps = 1e-6f, kScaling = 0.8f;
  const DType dtype = GetParam();
  const auto key = random_floats(kMaxRows * kDim, 1),
             queries = random_floats(kMaxRows * kHeads * kDim, 2);
  const auto weight = random_floats(kDim, 3), bias = random_floats(kDim, 4);
  const std::vector<int32_t> positions = {0, 7, 1000, 40000, 3}, slots = {5, 0, 15, 8, 9};
  std::vector<float> inv_freq;
  for (int i = 0; i < kRope / 2; ++i) {
    inv_freq.push_back(static_cast<float>(std::pow(10000.0, -2.0 * i / kRope)));
  }
  const size_t element = dtype_size(dtype);
  const size_t cache_bytes = size_t{kEntries} * kDim * element;
  const size_t q_bytes = size_t{kMaxRows} * kHeads * kDim * element;
  uint8_t* keys = marked(cache_bytes);
  uint8_t* q = marked(q_bytes);
  index_rows(queue(), {.counts = counts(kRows),
                       .key = to_device(key),
                       .queries = to_device(queries),
                       .q_out = q,
                       .positions = to_device(positions),
                       .kv_slot = to_device(slots),
                       .inv_freq = to_device(inv_freq),
                       .norm_weight = to_device(weight),
                       .norm_bias = to_device(bias),
                       .keys = keys,
                       .max_rows = kMaxRows,
                       .num_heads = kHeads,
                       .head_dim = kDim,
                       .rope_dim = kRope,
                       .scaling = kScaling,
                       .norm_eps = kEps,
                       .dtype = dtype,
                       .position_shift = -2});
  const auto q_raw = read(q, q_bytes), raw = read(keys, cache_bytes);
  const auto q_out = to_floats(q_raw, dtype), entries = to_floats(raw, dtype);
  const auto expect_turned = [&](std::vector<double> head, int row, const float* got) {
    const int position = std::max(0, positions[static_cast<size_t>(row)] - 2);
    for (size_t i = 0; i < kRope / 2; ++i) {
      const double angle = double(static_cast<float>(position) * inv_freq[i]);
      const double c = std::cos(angle) * kScaling, s = std::sin(angle) * kScaling;
      const double a = head[i], b = head[i + kRope / 2];
      head[i] = a * c - b * s;
      head[i + kRope / 2] = b * c + a * s;
    }
    for (size_t i = 0; i < kDim; ++i) {
      ASSERT_NEAR(got[i], head[i], std::abs(head[i]) * storage_error(dtype) + 1e-5) << row;
    }
  };
  for (int r = 0; r < kRows; ++r) {
    const float* x = &key[size_t(r) * kDim];
    double mean = 0, squares = 0;
    for (int i = 0; i < kDim; ++i) mean += double(x[i]) / kDim;
    for (int i = 0; i < kDim; ++i) squares += (x[i] - mean) * (x[i] - mean);
    std::vector<double> normed;
    for (size_t i = 0; i < kDim; ++i) {
      normed.push_back((x[i] - mean) / std::sqrt(squares / kDim + kEps) * weight[i] + bias[i]);
    }
    expect_turned(normed, r, &entries[size_t(slots[size_t(r)]) * kDim]);
    for (int h = 0; h < kHeads; ++h) {
      const size_t at = (size_t(r) * kHeads + size_t(h)) * kDim;
      expect_turned({queries.begin() + ptrdiff_t(at), queries.begin() + ptrdiff_t(at) + kDim}, r,
                    &q_out[at]);
    }
  }
  expect_marked(q_raw, size_t{kRows} * kHeads * kDim * element);
  for (int slot = 0; slot < kEntries; ++slot) {
    if (std::count(slots.begin(), slots.begin() + kRows, slot) > 0) continue;
    for (size_t b = 0; b < kDim * element; ++b) {
      ASSERT_EQ(raw[size_t(slot) * kDim * element + b], 0x5a);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, IndexRowsTest, testing::Values(DType::kF32, DType::kBF16));

}  // namespace
}  // namespace foretoken
