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

// Without a bias norms are of root mean squares, of queries too; rows lie side by side.
TEST_P(IndexRowsTest, NormsQueriesBySquares) {
  constexpr int kRows = 3, kHeads = 2, kDim = 32, kRope = 16, kStride = (kHeads + 1) * kDim;
  constexpr float kEps = 1e-6f;
  const DType dtype = GetParam();
  const auto x = random_floats(kRows * kStride, 1);
  const auto q_weight = random_floats(kDim, 2), k_weight = random_floats(kDim, 3);
  const float inv_freq[] = {1.0f, 0.5f, 0.3f, 0.2f, 0.1f, 0.05f, 0.01f, 0.001f};
  const std::vector<int32_t> positions = {0, 5, 300}, slots = {2, 0, 1};
  const float* rows = to_device(x);
  const size_t element = dtype_size(dtype);
  uint8_t* keys = marked(size_t{3} * kDim * element);
  uint8_t* q = marked(size_t{kRows} * kHeads * kDim * element);
  index_rows(queue(), {.counts = counts(kRows),
                       .key = rows + kHeads * kDim,
                       .queries = rows,
                       .q_out = q,
                       .positions = to_device(positions),
                       .kv_slot = to_device(slots),
                       .inv_freq = to_device(std::vector<float>(inv_freq, inv_freq + 8)),
                       .norm_weight = to_device(k_weight),
                       .norm_bias = nullptr,
                       .keys = keys,
                       .max_rows = kRows,
                       .num_heads = kHeads,
                       .head_dim = kDim,
                       .rope_dim = kRope,
                       .scaling = 1,
                       .norm_eps = kEps,
                       .dtype = dtype,
                       .query_norm = to_device(q_weight),
                       .stride = kStride});
  const auto q_out = read_typed(q, size_t{kRows} * kHeads * kDim, dtype);
  const auto entries = read_typed(keys, size_t{3} * kDim, dtype);
  for (int r = 0; r < kRows; ++r) {
    for (int h = 0; h <= kHeads; ++h) {
      const float* head = &x[size_t(r) * kStride + size_t(h) * kDim];
      const auto& weight = h < kHeads ? q_weight : k_weight;
      double squares = 0;
      for (int i = 0; i < kDim; ++i) squares += double(head[i]) * head[i] / kDim;
      std::vector<double> wanted;
      for (int i = 0; i < kDim; ++i) {
        wanted.push_back(head[i] / std::sqrt(squares + kEps) * weight[size_t(i)]);
      }
      for (size_t i = 0; i < kRope / 2; ++i) {
        const double angle = double(static_cast<float>(positions[size_t(r)]) * inv_freq[i]);
        const double a = wanted[i], b = wanted[i + kRope / 2];
        wanted[i] = a * std::cos(angle) - b * std::sin(angle);
        wanted[i + kRope / 2] = b * std::cos(angle) + a * std::sin(angle);
      }
      const float* got = h < kHeads ? &q_out[(size_t(r) * kHeads + size_t(h)) * kDim]
                                    : &entries[size_t(slots[size_t(r)]) * kDim];
      for (size_t i = 0; i < kDim; ++i) {
        ASSERT_NEAR(got[i], wanted[i], std::abs(wanted[i]) * storage_error(dtype) + 1e-5)
            << r << " head " << h;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, IndexRowsTest, testing::Values(DType::kF32, DType::kBF16));

}  // namespace
}  // namespace foretoken
