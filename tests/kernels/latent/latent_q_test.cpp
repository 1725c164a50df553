#include "kernels/latent/latent_q.h"

#include <algorithm>
#include <cmath>

#include "support/row_ops.h"

namespace foretoken {
namespace {

struct Case {
  int num_heads;
  int nope_dim;
  int rope_dim;
  int kv_rank;
  int behind;  // elements of a row of x behind its heads
  DType dtype;
  bool turns = true;
  int shift = 0;
  QueryScale scale = {};
};

constexpr int kMaxRows = 5, kRows = 4;
constexpr float kScaling = 1.25f;

class LatentQTest : public RowOpTest, public testing::WithParamInterface<Case> {};

TEST_P(LatentQTest, TakesHeadsApartAndLeavesTheLatentsPart) {
  const Case c = GetParam();
  const int dim = c.nope_dim + c.rope_dim, entry = c.kv_rank + c.rope_dim, half = c.rope_dim / 2;
  const int stride = c.num_heads * dim + c.behind;
  const auto x = random_floats(size_t(kMaxRows) * stride, 1);
  const std::vector<int32_t> positions = {0, 7, 1000, 40000, 3};
  const auto inv_freq = random_floats(size_t(half), 2);
  const size_t element = dtype_size(c.dtype);
  const size_t nope_bytes = size_t(kMaxRows) * c.num_heads * c.nope_dim * element;
  const size_t q_bytes = size_t(kMaxRows) * c.num_heads * entry * element;
  uint8_t* nope = marked(nope_bytes);
  uint8_t* q = marked(q_bytes);
  latent_q(queue(), {.counts = counts(kRows),
                     .x = to_device(x),
                     .nope = nope,
                     .q = q,
                     .positions = to_device(positions),
                     .inv_freq = c.turns ? to_device(inv_freq) : nullptr,
                     .x_stride = stride,
                     .max_rows = kMaxRows,
                     .num_heads = c.num_heads,
                     .nope_dim = c.nope_dim,
                     .rope_dim = c.rope_dim,
                     .kv_rank = c.kv_rank,
                     .scaling = kScaling,
                     .dtype = c.dtype,
                     .position_shift = c.shift,
                     .query_scale = c.scale});
  const auto nope_raw = read(nope, nope_bytes), q_raw = read(q, q_bytes);
  const auto nope_out = to_floats(nope_raw, c.dtype), q_out = to_floats(q_raw, c.dtype);
  const auto check = [&](float got, double want) {
    ASSERT_NEAR(got, want, std::abs(want) * storage_error(c.dtype) + 2e-6);
  };
  for (int r = 0; r < kRows; ++r) {
    const auto position = static_cast<float>(std::max(0, positions[r] + c.shift));
    const double grown =
        c.scale.beta == 0
            ? 1
            : 1 + c.scale.beta *
                      std::log1p(std::floor((position + c.scale.offset) / c.scale.period));
    for (int h = 0; h < c.num_heads; ++h) {
      const float* from = &x[size_t(r) * stride + h * dim];
      const size_t head = size_t(r) * c.num_heads + h;
      for (int i = 0; i < c.nope_dim; ++i) {
        check(nope_out[head * c.nope_dim + i], from[i] * grown);
      }
      const float* part = from + c.nope_dim;
      for (int i = 0; i < c.rope_dim; ++i) {
        const float angle = position * inv_freq[i % half];
        const double cosine = std::cos(double(angle)) * kScaling;
        const double sine = std::sin(double(angle)) * kScaling;
        const double want = !c.turns   ? part[i]
                            : i < half ? part[i] * cosine - part[i + half] * sine
                                       : part[i] * cosine + part[i - half] * sine;
        check(q_out[head * entry + c.kv_rank + i], want * grown);
      }
      for (size_t b = head * entry * element; b < (head * entry + c.kv_rank) * element; ++b) {
        ASSERT_EQ(q_raw[b], 0x5a) << "the latents' part of head " << h;
      }
    }
  }
  expect_marked(nope_raw, size_t(kRows) * c.num_heads * c.nope_dim * element);
  expect_marked(q_raw, size_t(kRows) * c.num_heads * entry * element);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LatentQTest,
    testing::Values(Case{4, 32, 16, 32, 0, DType::kF32}, Case{4, 32, 16, 32, 48, DType::kBF16},
                    Case{9, 128, 64, 512, 576, DType::kBF16, true, -1},
                    Case{3, 20, 2, 16, 7, DType::kF32, false},
                    Case{2, 24, 8, 16, 0, DType::kBF16, true, -2, QueryScale{0.1f, 16, 1}},
                    Case{2, 24, 8, 16, 0, DType::kF32, true, 0, QueryScale{0.3f, 8, 0}}));

}  // namespace
}  // namespace foretoken
