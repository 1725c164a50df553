#include "kernels/latent/latent_q.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/op_cost.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

struct LatentQCase {
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

constexpr int kLatentQMaxRows = 5, kLatentQRows = 4;
constexpr float kLatentQScaling = 1.25f;

class LatentQTest : public RowOpTest, public testing::WithParamInterface<LatentQCase> {};

TEST_P(LatentQTest, TakesHeadsApartAndLeavesTheLatentsPart) {
  const LatentQCase c = GetParam();
  const int dim = c.nope_dim + c.rope_dim, entry = c.kv_rank + c.rope_dim, half = c.rope_dim / 2;
  const int stride = c.num_heads * dim + c.behind;
  const auto x = random_floats(size_t(kLatentQMaxRows) * stride, 1);
  const std::vector<int32_t> positions = {0, 7, 1000, 40000, 3};
  const auto inv_freq = random_floats(size_t(half), 2);
  const size_t element = dtype_size(c.dtype);
  const size_t nope_bytes = size_t(kLatentQMaxRows) * c.num_heads * c.nope_dim * element;
  const size_t q_bytes = size_t(kLatentQMaxRows) * c.num_heads * entry * element;
  uint8_t* nope = marked(nope_bytes);
  uint8_t* q = marked(q_bytes);
  latent_q(queue(), {.counts = counts(kLatentQRows),
                     .x = to_device(x),
                     .nope = nope,
                     .q = q,
                     .positions = to_device(positions),
                     .inv_freq = c.turns ? to_device(inv_freq) : nullptr,
                     .x_stride = stride,
                     .max_rows = kLatentQMaxRows,
                     .num_heads = c.num_heads,
                     .nope_dim = c.nope_dim,
                     .rope_dim = c.rope_dim,
                     .kv_rank = c.kv_rank,
                     .scaling = kLatentQScaling,
                     .dtype = c.dtype,
                     .position_shift = c.shift,
                     .query_scale = c.scale});
  const auto nope_raw = read(nope, nope_bytes), q_raw = read(q, q_bytes);
  const auto nope_out = to_floats(nope_raw, c.dtype), q_out = to_floats(q_raw, c.dtype);
  const auto check = [&](float got, double want) {
    ASSERT_NEAR(got, want, std::abs(want) * storage_error(c.dtype) + 2e-6);
  };
  for (int r = 0; r < kLatentQRows; ++r) {
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
        const double cosine = std::cos(double(angle)) * kLatentQScaling;
        const double sine = std::sin(double(angle)) * kLatentQScaling;
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
  expect_marked(nope_raw, size_t(kLatentQRows) * c.num_heads * c.nope_dim * element);
  expect_marked(q_raw, size_t(kLatentQRows) * c.num_heads * entry * element);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LatentQTest,
    testing::Values(LatentQCase{4, 32, 16, 32, 0, DType::kF32},
                    LatentQCase{4, 32, 16, 32, 48, DType::kBF16},
                    LatentQCase{9, 128, 64, 512, 576, DType::kBF16, true, -1},
                    LatentQCase{3, 20, 2, 16, 7, DType::kF32, false},
                    LatentQCase{2, 24, 8, 16, 0, DType::kBF16, true, -2, QueryScale{0.1f, 16, 1}},
                    LatentQCase{2, 24, 8, 16, 0, DType::kF32, true, 0, QueryScale{0.3f, 8, 0}}));

// With the matrices of the heads: what both ops leave, one after the other, for every number of
// rows, and of each row alone.
class AbsorbedQueryTest : public RowOpTest, public testing::WithParamInterface<LatentQCase> {
 protected:
  void SetUp() override {
    RowOpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const LatentQCase c = GetParam();
    const int64_t rows = int64_t{c.num_heads} * c.kv_rank;
    const auto weight = typed_data(random_floats(size_t(rows * c.nope_dim), 1, 0.2f), c.dtype);
    const std::array<WeightPart, 1> part = {{{weight.bytes.data(), rows}}};
    absorb_ = device().pack_weight(part, c.nope_dim, c.dtype, WeightOrder::kPlain, c.kv_rank);
    ASSERT_NE(absorb_, nullptr);
    x_ = random_floats(size_t(kMaxRows) * stride(), 2);
    inv_freq_ = random_floats(size_t(c.rope_dim / 2), 3);
  }
  void TearDown() override {
    if (absorb_ != nullptr) {
      drain();
      device().free_weight(absorb_);
    }
    RowOpTest::TearDown();
  }

  static int stride() {
    const LatentQCase c = GetParam();
    return c.num_heads * (c.nope_dim + c.rope_dim) + c.behind;
  }
  static size_t q_row() {
    const LatentQCase c = GetParam();
    return size_t(c.num_heads) * (c.kv_rank + c.rope_dim) * dtype_size(c.dtype);
  }

  // q of rows [first, first + live) of max_rows.
  std::vector<uint8_t> queries(int first, int live, int max_rows, bool at_once) {
    const LatentQCase c = GetParam();
    std::vector<int32_t> positions;
    for (int r = 0; r < max_rows; ++r) positions.push_back((first + r) * 37 % 4000);
    const std::vector<float> x(x_.begin() + ptrdiff_t(first) * stride(),
                               x_.begin() + ptrdiff_t(first + max_rows) * stride());
    LatentQArgs args{.counts = counts(live),
                     .x = to_device(x),
                     .nope = marked(size_t(max_rows) * c.num_heads * c.nope_dim * 4),
                     .q = marked(size_t(max_rows) * q_row()),
                     .positions = to_device(positions),
                     .inv_freq = to_device(inv_freq_),
                     .x_stride = stride(),
                     .max_rows = max_rows,
                     .num_heads = c.num_heads,
                     .nope_dim = c.nope_dim,
                     .rope_dim = c.rope_dim,
                     .kv_rank = c.kv_rank,
                     .scaling = kLatentQScaling,
                     .dtype = c.dtype,
                     .position_shift = c.shift,
                     .query_scale = c.scale,
                     .absorb = at_once ? absorb_ : nullptr};
    latent_q(queue(), args);
    args.absorb = absorb_;
    if (!at_once) head_gemm(queue(), absorbing_product(args));
    return read(static_cast<uint8_t*>(args.q), size_t(max_rows) * q_row());
  }

  static constexpr int kMaxRows = 70;
  void* absorb_ = nullptr;
  std::vector<float> x_, inv_freq_;
};

TEST_P(AbsorbedQueryTest, AreWhatBothOpsLeave) {
  for (const int rows : {1, 3, 17, 64, 65, kMaxRows}) {
    const int max_rows = std::min(rows + rows % 2, kMaxRows);
    const auto got = queries(0, rows, max_rows, true);
    ASSERT_EQ(got, queries(0, rows, max_rows, false)) << rows << " rows";
    for (const int r : {0, rows / 2, rows - 1}) {
      const auto one = queries(r, 1, 1, true);
      ASSERT_TRUE(std::equal(one.begin(), one.end(), got.begin() + ptrdiff_t(r * q_row())))
          << "row " << r << " of " << rows;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, AbsorbedQueryTest,
                         testing::Values(LatentQCase{4, 32, 16, 32, 0, DType::kF32},
                                         LatentQCase{4, 32, 16, 32, 48, DType::kBF16},
                                         LatentQCase{3, 128, 64, 512, 576, DType::kBF16, true, -1},
                                         LatentQCase{3, 20, 2, 16, 7, DType::kBF16},
                                         LatentQCase{2, 24, 8, 16, 0, DType::kBF16, true, -2,
                                                     QueryScale{0.1f, 16, 1}}));

TEST(LatentQCost, CountsTheMatricesOfTheHeads) {
  LatentQArgs args{};
  args.max_rows = 8;
  args.num_heads = 3;
  args.nope_dim = 32;
  args.rope_dim = 16;
  args.kv_rank = 64;
  args.dtype = DType::kBF16;
  const LiveRows live = {.counts = {5, 0, 1, 0}};
  EXPECT_EQ(op_cost(Op::kLatentQ, &args, live).row_bytes, 5 * 3 * 48 * (4 + 2));
  EXPECT_EQ(op_cost(Op::kLatentQ, &args, live).weight_bytes, 0);
  const int handle = 0;
  args.absorb = &handle;
  const OpCost cost = op_cost(Op::kLatentQ, &args, live);
  EXPECT_EQ(cost.weight_bytes, 3 * 64 * 32 * 2);
  EXPECT_EQ(cost.row_bytes, 5 * 3 * (48 * 4 + 80 * 2));
  EXPECT_EQ(cost.flops, 2 * 5 * 3 * 64 * 32);
  EXPECT_EQ(op_shape(Op::kLatentQ, &args), "3 x 48 to 64");
}

}  // namespace
}  // namespace foretoken
