#include "kernels/latent/head_gemm.h"

#include <array>
#include <cmath>
#include <tuple>

#include "kernels/op_cost.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

struct Case {
  int num_heads;
  int n;
  int k;
  int x_stride;
  int y_stride;
  DType dtype;
};

class HeadGemmTest : public RowOpTest, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    RowOpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const Case c = GetParam();
    const int64_t rows = int64_t{c.num_heads} * c.n;
    weight_ = typed_data(random_floats(size_t(rows * c.k), 1, 1 / std::sqrt(float(c.k))), c.dtype);
    const std::array<WeightPart, 1> part = {{{weight_.data(), rows}}};
    packed_ = device().pack_weight(part, c.k, c.dtype, WeightOrder::kPlain, c.n);
    ASSERT_NE(packed_, nullptr);
  }
  void TearDown() override {
    if (packed_ != nullptr) {
      drain();
      device().free_weight(packed_);
    }
    RowOpTest::TearDown();
  }

  // y of the rows of x, `rows` of them live, as bytes; the rest marked.
  std::vector<uint8_t> multiply(const TypedData& x, int rows, int max_rows) {
    const Case c = GetParam();
    const size_t bytes = size_t(max_rows) * c.num_heads * c.y_stride * dtype_size(c.dtype);
    uint8_t* y = marked(bytes);
    head_gemm(queue(), {counts(rows), upload_typed(x), packed_, y, max_rows, c.num_heads, c.n, c.k,
                        c.x_stride, c.y_stride, c.dtype});
    return read(y, bytes);
  }

  TypedData random_x(int rows, uint64_t seed) const {
    const Case c = GetParam();
    return typed_data(random_floats(size_t(rows) * c.num_heads * c.x_stride, seed), c.dtype);
  }

  TypedData weight_;
  void* packed_ = nullptr;
};

TEST_P(HeadGemmTest, MatchesDoubleAndLeavesTheRest) {
  const Case c = GetParam();
  const TypedData x = random_x(9, 2);
  const auto raw = multiply(x, 7, 9);
  const auto y = to_floats(raw, c.dtype);
  for (int r = 0; r < 7; ++r) {
    for (int h = 0; h < c.num_heads; ++h) {
      const size_t from = (size_t(r) * c.num_heads + h) * c.x_stride;
      const size_t to = (size_t(r) * c.num_heads + h) * c.y_stride;
      for (int i = 0; i < c.n; ++i) {
        double want = 0, size = 0;
        for (int j = 0; j < c.k; ++j) {
          const double term =
              double(x.values[from + j]) * weight_.values[(size_t(h) * c.n + i) * c.k + j];
          want += term;
          size += std::abs(term);
        }
        const double bound = size * 1e-6 + std::abs(want) * storage_error(c.dtype) + 1e-6;
        ASSERT_NEAR(y[to + i], want, bound) << "row " << r << " head " << h << " column " << i;
      }
      const size_t element = dtype_size(c.dtype);
      for (size_t b = (to + c.n) * element; b < (to + c.y_stride) * element; ++b) {
        ASSERT_EQ(raw[b], 0x5a) << "behind head " << h << " of row " << r;
      }
    }
  }
  expect_marked(raw, size_t(7) * c.num_heads * c.y_stride * dtype_size(c.dtype));
}

// The bits of a row depend neither on its place nor on the number of rows.
TEST_P(HeadGemmTest, RowsAreBitEqualForEveryCount) {
  const Case c = GetParam();
  const size_t row = size_t(c.num_heads) * c.x_stride * dtype_size(c.dtype);
  const size_t out = size_t(c.num_heads) * c.y_stride * dtype_size(c.dtype);
  const TypedData x = random_x(512, 3);
  for (const int rows : {1, 2, 15, 17, 64, 65, 200, 512}) {
    const auto y = multiply(x, rows, rows == 17 ? 100 : rows);
    for (const int r : {0, rows / 2, rows - 1}) {
      TypedData one;
      one.bytes.assign(x.bytes.begin() + r * row, x.bytes.begin() + (r + 1) * row);
      ASSERT_EQ(std::memcmp(&y[r * out], multiply(one, 1, 1).data(), out), 0)
          << "row " << r << " of " << rows;
    }
  }
}

// kv_lora_rank x nope and value x kv_lora_rank, heads that fill no vector, strides that are wider,
// a long k (the groups of DeepSeek V4).
INSTANTIATE_TEST_SUITE_P(
    Shapes, HeadGemmTest,
    testing::Values(Case{4, 128, 32, 32, 144, DType::kF32}, Case{4, 128, 32, 32, 144, DType::kBF16},
                    Case{3, 32, 96, 112, 32, DType::kF32}, Case{3, 32, 96, 112, 32, DType::kBF16},
                    Case{2, 512, 128, 128, 576, DType::kBF16},
                    Case{5, 16, 48, 48, 24, DType::kBF16}, Case{5, 16, 20, 23, 16, DType::kBF16},
                    Case{2, 48, 20, 20, 48, DType::kF32},
                    Case{2, 48, 1040, 1040, 48, DType::kBF16}));

TEST(HeadGemmCost, CountsTheWeightOnce) {
  HeadGemmArgs args{};
  args.max_rows = 8;
  args.num_heads = 3;
  args.n = 32;
  args.k = 20;
  args.dtype = DType::kBF16;
  const OpCost cost = op_cost(Op::kHeadGemm, &args, {.counts = {5, 0, 1, 0}});
  EXPECT_EQ(cost.weight_bytes, 3 * 32 * 20 * 2);
  EXPECT_EQ(cost.row_bytes, 5 * 3 * (32 + 20) * 2);
  EXPECT_EQ(cost.flops, 2 * 5 * 3 * 32 * 20);
  EXPECT_EQ(op_shape(Op::kHeadGemm, &args), "3 of 32 x 20");
}

}  // namespace
}  // namespace foretoken
