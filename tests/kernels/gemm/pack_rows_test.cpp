#include "kernels/gemm/pack_rows.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "kernels/gemm/gemm.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

struct PackRowsCase {
  int n;
  int k;
  DType dtype;
  WeightOrder order;
};

class PackRowsTest : public RowOpTest, public testing::WithParamInterface<PackRowsCase> {
 protected:
  std::vector<uint8_t> multiply(const void* x, const void* weight) {
    const auto [n, k, dtype, order] = GetParam();
    const int gated = order == WeightOrder::kGateUp ? 1 : 0;
    const size_t bytes = 3 * static_cast<size_t>(n >> gated) * dtype_size(dtype);
    uint8_t* y = marked(bytes);
    GemmArgs args{};
    args.counts = counts(3);
    args.x = x;
    args.weight = weight;
    args.y = y;
    args.row_kind = RowKind::kToken;
    args.max_rows = 3;
    args.n = n;
    args.k = k;
    args.dtype = args.out_dtype = dtype;
    args.gated = gated;
    gemm(queue(), args);
    return read(y, bytes);
  }
};

// Pieces in any order, from pinned memory by way of scratch memory and from device memory.
TEST_P(PackRowsTest, EqualsAWeightPackedWhole) {
  const auto [n, k, dtype, order] = GetParam();
  const TypedData w = typed_data(random_floats(size_t(n) * k, 1, 1 / std::sqrt(float(k))), dtype);
  const void* x = upload_typed(typed_data(random_floats(size_t(3) * k, 2), dtype));
  const auto want = multiply(x, pack(w.data(), n, k, dtype, order));
  const size_t row_bytes = size_t(k) * dtype_size(dtype);
  const auto slice = static_cast<int>(device().weight_slice_rows(n, k, dtype, order));
  const int piece = slice * std::max(1, n / slice / 3);
  for (const bool pinned : {true, false}) {
    void* weight = device().make_weight(n, k, dtype, order);
    ASSERT_NE(weight, nullptr);
    for (int first = (n - 1) / piece * piece; first >= 0; first -= piece) {
      const int rows = std::min(piece, n - first);
      std::vector<uint8_t> bytes;
      for (int place = first; place < first + rows; ++place) {
        const auto row = static_cast<size_t>(row_in_packing_order(place, n, slice, order));
        const auto begin = w.bytes.begin() + static_cast<std::ptrdiff_t>(row * row_bytes);
        bytes.insert(bytes.end(), begin, begin + static_cast<std::ptrdiff_t>(row_bytes));
      }
      PackRowsArgs args;
      args.weight = weight;
      if (pinned) {
        uint8_t* from = allocate<uint8_t>(bytes.size(), MemoryKind::kPinned);
        std::copy(bytes.begin(), bytes.end(), from);
        args.rows = from;
        args.scratch = allocate_bytes(bytes.size());
      } else {
        args.rows = to_device(bytes);
      }
      args.first_row = first;
      args.num_rows = rows;
      args.n = n;
      args.k = k;
      args.slice_rows = slice;
      args.dtype = dtype;
      args.order = order;
      pack_rows(queue(), args);
    }
    EXPECT_EQ(multiply(x, weight), want) << (pinned ? "pinned" : "device");
    device().free_weight(weight);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PackRowsTest,
                         testing::Values(PackRowsCase{1, 16, DType::kF32, WeightOrder::kPlain},
                                         PackRowsCase{64, 192, DType::kBF16, WeightOrder::kPlain},
                                         PackRowsCase{1000, 512, DType::kF32, WeightOrder::kPlain},
                                         PackRowsCase{1003, 520, DType::kBF16, WeightOrder::kPlain},
                                         PackRowsCase{5000, 64, DType::kBF16, WeightOrder::kPlain},
                                         PackRowsCase{22, 24, DType::kF32, WeightOrder::kGateUp},
                                         PackRowsCase{64, 192, DType::kBF16, WeightOrder::kGateUp},
                                         PackRowsCase{1000, 512, DType::kF32, WeightOrder::kGateUp},
                                         PackRowsCase{5008, 72, DType::kBF16,
                                                      WeightOrder::kGateUp}));

TEST(PackingOrder, TakesEveryRowOnceAndPairsGatesWithTheirUps) {
  for (const int64_t n : {2, 10, 64, 100}) {
    std::set<int64_t> seen;
    for (int64_t place = 0; place < n; ++place) {
      const int64_t row = row_in_packing_order(place, n, 16, WeightOrder::kGateUp);
      EXPECT_TRUE(row >= 0 && row < n && seen.insert(row).second) << n << " " << place;
      EXPECT_EQ(row_in_packing_order(place, n, 16, WeightOrder::kPlain), place);
    }
  }
  EXPECT_EQ(row_in_packing_order(7, 100, 16, WeightOrder::kGateUp), 7);
  EXPECT_EQ(row_in_packing_order(8, 100, 16, WeightOrder::kGateUp), 50);
  EXPECT_EQ(row_in_packing_order(16, 100, 16, WeightOrder::kGateUp), 8);
  EXPECT_EQ(row_in_packing_order(97, 100, 16, WeightOrder::kGateUp), 49);
  EXPECT_EQ(row_in_packing_order(98, 100, 16, WeightOrder::kGateUp), 98);
}

}  // namespace
}  // namespace foretoken
