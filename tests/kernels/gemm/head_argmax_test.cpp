#include "kernels/gemm/head_argmax.h"

#include <cmath>
#include <limits>

#include "kernels/gemm/gemm.h"
#include "support/row_ops.h"
#include "support/thinning.h"

namespace foretoken {
namespace {

struct HeadArgmaxCase {
  int n;
  int k;
  DType dtype;
};

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

class HeadArgmaxTest : public RowOpTest, public testing::WithParamInterface<HeadArgmaxCase> {
 protected:
  std::vector<int32_t> run(const void* x, const void* weight, const int32_t* id_map, int rows,
                           int max_rows) {
    const HeadArgmaxCase c = GetParam();
    int32_t* ids = to_device(std::vector<int32_t>(static_cast<size_t>(max_rows), -7));
    // Stale bytes of an earlier call must not matter.
    uint8_t* workspace = marked(static_cast<size_t>(head_argmax_bytes(max_rows, c.n)));
    head_argmax(queue(), {counts(100, rows), x, weight, id_map, ids, workspace, max_rows, c.n, c.k,
                          c.dtype});
    return read(ids, static_cast<size_t>(max_rows));
  }
  // The products as the gemm op makes them.
  std::vector<float> products(const void* x, const void* weight, int rows) {
    const HeadArgmaxCase c = GetParam();
    auto* y = allocate<float>(size_t(rows) * c.n);
    gemm(queue(), {counts(100, rows), x, weight, y, nullptr, RowKind::kLogits, 0, rows, c.n, c.k,
                   c.dtype, DType::kF32});
    return read(y, size_t(rows) * c.n);
  }
  static int32_t best_of(const float* products, const std::vector<int32_t>& id_map) {
    int32_t best = -1;
    for (size_t n = 0; n < id_map.size(); ++n) {
      if (id_map[n] < 0 || std::isnan(products[n]) || products[n] == -kInf) continue;
      if (best < 0 || products[n] > products[best]) best = static_cast<int32_t>(n);
    }
    return best < 0 ? -1 : id_map[best];
  }
  static std::vector<int32_t> all_ids() {
    std::vector<int32_t> ids(GetParam().n);
    for (int i = 0; i < GetParam().n; ++i) ids[i] = i;
    return ids;
  }
  // Every third row is left out; the others name ids in another order.
  static std::vector<int32_t> ids_with_holes() {
    std::vector<int32_t> ids(GetParam().n);
    for (int i = 0; i < GetParam().n; ++i) ids[i] = i % 3 == 1 ? -1 - i : 5 * (GetParam().n - i);
    return ids;
  }
  void* random_weight(uint64_t seed) {
    const HeadArgmaxCase c = GetParam();
    const TypedData w = typed_data(random_floats(size_t(c.n) * c.k, seed, 0.1f), c.dtype);
    return pack(w.data(), c.n, c.k, c.dtype);
  }
};

TEST_P(HeadArgmaxTest, EqualsTheArgmaxOfTheGemmForEveryCount) {
  const HeadArgmaxCase c = GetParam();
  constexpr int kMax = 70;
  const void* weight = random_weight(1);
  const void* x = upload_typed(typed_data(random_floats(size_t(kMax) * c.k, 2), c.dtype));
  const auto y = products(x, weight, kMax);
  const auto all = all_ids(), holes = ids_with_holes();
  const int32_t* map = to_device(holes);
  // The small shapes cover the row counts on the CPU.
  const bool sparse = int64_t{c.n} * c.k > 600000 && device().type() == DeviceType::kCpu;
  const int step = std::max(sparse ? 8 : 1, test_thinning());
  for (int rows = 0; rows <= kMax; rows += rows >= 40 ? std::max(step, 10) : step) {
    for (const int max_rows : {std::max(rows, 1), kMax}) {
      const auto plain = run(x, weight, nullptr, rows, max_rows);
      const auto mapped = run(x, weight, map, rows, max_rows);
      for (int r = 0; r < rows; ++r) {
        ASSERT_EQ(plain[r], best_of(&y[size_t(r) * c.n], all)) << rows << " " << r;
        ASSERT_EQ(mapped[r], best_of(&y[size_t(r) * c.n], holes)) << rows << " " << r;
      }
      for (int r = rows; r < max_rows; ++r) ASSERT_EQ(plain[r], -7) << "not a live row";
    }
  }
}

// Products that collide, NaN and infinities. Row 0 of x reads them off the weight's first column.
TEST_P(HeadArgmaxTest, TiesAndNumbersThatAreNone) {
  const HeadArgmaxCase c = GetParam();
  struct {
    std::vector<std::pair<int, float>> values;  // by row of the weight; the others are -1
    int want;
  } const cases[] = {
      {{{2, 3.0f}, {c.n - 1, 3.0f}}, 2},
      {{{c.n / 2, 3.0f}, {c.n - 1, 3.0f}}, c.n / 2},
      {{{0, kNaN}, {3, 2.0f}, {c.n - 2, kNaN}}, 3},
      {{{1, kInf}, {4, kInf}, {c.n - 1, 5.0f}}, 1},
      {{{0, -kInf}}, 1},
      {{{3, 0.0f}, {2, -0.0f}}, 2},
  };
  std::vector<float> row(c.k, 0.0f);
  row[0] = 1;
  const void* x = upload_typed(typed_data(row, c.dtype));
  for (const auto& test : cases) {
    std::vector<float> w(size_t(c.n) * c.k, 0.0f);
    for (int n = 0; n < c.n; ++n) w[size_t(n) * c.k] = -1;
    for (const auto& [n, value] : test.values) w[size_t(n) * c.k] = value;
    const TypedData data = typed_data(w, c.dtype);
    const void* weight = pack(data.data(), c.n, c.k, c.dtype);
    EXPECT_EQ(run(x, weight, nullptr, 1, 1)[0], test.want);
  }
}

// A row that is left out wins nothing with the same or a higher product, wherever it lies.
TEST_P(HeadArgmaxTest, RowsLeftOutDoNotTie) {
  const HeadArgmaxCase c = GetParam();
  std::vector<float> w(size_t(c.n) * c.k, 0.0f), row(c.k, 0.0f);
  for (const int n : {1, 2, 4, c.n - 1}) w[size_t(n) * c.k] = n == 4 ? 5.0f : 3.0f;
  row[0] = 1;
  const TypedData data = typed_data(w, c.dtype);
  const void* weight = pack(data.data(), c.n, c.k, c.dtype);
  std::vector<int32_t> map(c.n, 9);
  map[1] = map[4] = -1;
  map[2] = 8;
  EXPECT_EQ(run(upload_typed(typed_data(row, c.dtype)), weight, to_device(map), 1, 1)[0], 8);
}

TEST_P(HeadArgmaxTest, NothingAdmittedIsNoId) {
  const HeadArgmaxCase c = GetParam();
  const void* weight = random_weight(3);
  std::vector<float> row(2 * size_t(c.k), 0.5f);
  std::fill_n(row.begin(), c.k, kNaN);
  const void* x = upload_typed(typed_data(row, c.dtype));
  const int32_t* none = to_device(std::vector<int32_t>(c.n, -1));
  EXPECT_EQ(run(x, weight, none, 2, 2), (std::vector<int32_t>{-1, -1}));
  std::vector<int32_t> last(c.n, -1);
  last[c.n - 1] = 123;
  EXPECT_EQ(run(x, weight, to_device(last), 2, 2), (std::vector<int32_t>{-1, 123}))
      << "every product of row 0 is NaN";
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, HeadArgmaxTest,
    testing::Values(HeadArgmaxCase{7, 24, DType::kF32}, HeadArgmaxCase{1000, 64, DType::kF32},
                    HeadArgmaxCase{2048, 256, DType::kF32}, HeadArgmaxCase{33, 100, DType::kBF16},
                    HeadArgmaxCase{2048, 256, DType::kBF16},
                    HeadArgmaxCase{5001, 512, DType::kBF16}),
    [](const auto& test) {
      return std::string(dtype_name(test.param.dtype)) + "_n" + std::to_string(test.param.n);
    });

TEST(HeadArgmaxBytes, HoldNarrowTilesForFewRows) {
  EXPECT_EQ(head_argmax_bytes(3, 33), 3 * 3 * 8);
  EXPECT_EQ(head_argmax_bytes(1000, 1 << 20), (64 * int64_t{65536} + 936 * int64_t{32768}) * 8);
}

}  // namespace
}  // namespace foretoken
