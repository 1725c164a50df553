#include "kernels/rope_kv.h"

#include <cmath>

#include "support/row_ops.h"

namespace foretoken {
namespace {

struct Case {
  int num_heads;
  int num_kv_heads;
  int head_dim;
  int rotary_dim;
  float scaling;
  DType dtype;
};

constexpr int kBlocks = 4, kBlockSize = 4, kMaxRows = 5, kRows = 4;

class RopeKvTest : public RowOpTest, public testing::WithParamInterface<Case> {
 protected:
  // Element i of head `x` after rotation at `position`.
  static double rotated(const float* x, int i, int position, const std::vector<float>& inv_freq,
                        float scaling) {
    const int half = static_cast<int>(inv_freq.size());
    if (i >= 2 * half) return x[i];
    const float angle = static_cast<float>(position) * inv_freq[i % half];
    const double c = std::cos(double(angle)) * scaling, s = std::sin(double(angle)) * scaling;
    return i < half ? x[i] * c - x[i + half] * s : x[i] * c + x[i - half] * s;
  }
};

TEST_P(RopeKvTest, RotatesAndStores) {
  const Case c = GetParam();
  const int width = (c.num_heads + 2 * c.num_kv_heads) * c.head_dim;
  const auto qkv = random_floats(kMaxRows * width, 1);
  const std::vector<int32_t> positions = {0, 7, 1000, 40000, 3};
  const std::vector<int32_t> slots = {5, 0, 15, 8, 9};
  std::vector<float> inv_freq;
  for (int i = 0; i < c.rotary_dim / 2; ++i) {
    inv_freq.push_back(static_cast<float>(std::pow(10000.0, -2.0 * i / c.rotary_dim)));
  }
  const size_t element = dtype_size(c.dtype);
  const size_t q_bytes = size_t(kMaxRows) * c.num_heads * c.head_dim * element;
  const size_t cache_count = size_t(kBlocks) * kBlockSize * c.num_kv_heads * c.head_dim;
  uint8_t* q = marked(q_bytes);
  uint8_t* k = marked(cache_count * element);
  uint8_t* v = marked(cache_count * element);
  const KvLayer kv{k, v, c.num_kv_heads, kBlockSize, c.head_dim, c.dtype};
  rope_kv(queue(), {counts(kRows), to_device(qkv), q, to_device(positions), to_device(slots),
                    to_device(inv_freq), kv, kMaxRows, c.num_heads, c.rotary_dim, c.scaling});
  const auto q_raw = read(q, q_bytes);
  const auto q_out = to_floats(q_raw, c.dtype);
  const auto k_raw = read(k, cache_count * element);
  const auto v_raw = read(v, cache_count * element);
  const auto k_out = to_floats(k_raw, c.dtype), v_out = to_floats(v_raw, c.dtype);
  const auto check = [&](float got, double want) {
    ASSERT_NEAR(got, want, std::abs(want) * storage_error(c.dtype) + 1e-6);
  };
  std::vector<bool> written(cache_count, false);
  for (int r = 0; r < kRows; ++r) {
    for (int h = 0; h < c.num_heads + 2 * c.num_kv_heads; ++h) {
      const float* x = &qkv[r * width + h * c.head_dim];
      for (int i = 0; i < c.head_dim; ++i) {
        const double turned = rotated(x, i, positions[r], inv_freq, c.scaling);
        if (h < c.num_heads) {
          check(q_out[(r * c.num_heads + h) * c.head_dim + i], turned);
          continue;
        }
        const int kv_head = (h - c.num_heads) % c.num_kv_heads;
        const size_t at = ((size_t(slots[r] / kBlockSize) * c.num_kv_heads + kv_head) * kBlockSize +
                           slots[r] % kBlockSize) *
                              c.head_dim +
                          i;
        written[at] = true;
        if (h < c.num_heads + c.num_kv_heads) {
          check(k_out[at], turned);
        } else {
          check(v_out[at], x[i]);
        }
      }
    }
  }
  expect_marked(q_raw, size_t(kRows) * c.num_heads * c.head_dim * element);
  for (size_t i = 0; i < cache_count; ++i) {
    if (written[i]) continue;
    ASSERT_EQ(k_raw[i * element], 0x5a);
    ASSERT_EQ(v_raw[i * element], 0x5a);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, RopeKvTest,
                         testing::Values(Case{4, 2, 16, 16, 1.0f, DType::kF32},
                                         Case{3, 1, 64, 32, 1.0f, DType::kF32},
                                         Case{8, 8, 128, 128, 1.25f, DType::kBF16},
                                         Case{2, 1, 10, 0, 1.0f, DType::kBF16}));

}  // namespace
}  // namespace foretoken
