#include "kernels/pack_rows.h"

#include <algorithm>
#include <cmath>

#include "kernels/gemm.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

struct Case {
  int n;
  int k;
  DType dtype;
  WeightOrder order = WeightOrder::kPlain;
};

// Rows of [gate; up] with each slice's gates and ups side by side.
std::vector<uint8_t> in_slices(const std::vector<uint8_t>& rows, int n, size_t row_bytes,
                               int slice) {
  std::vector<uint8_t> sliced;
  const auto append = [&](int first, int count) {
    const auto begin = rows.begin() + static_cast<ptrdiff_t>(size_t(first) * row_bytes);
    sliced.insert(sliced.end(), begin, begin + static_cast<ptrdiff_t>(size_t(count) * row_bytes));
  };
  for (int first = 0; first < n; first += slice) {
    const int count = std::min(slice, n - first) / 2;
    append(first / 2, count);
    append(n / 2 + first / 2, count);
  }
  return sliced;
}

class PackRowsTest : public RowOpTest, public testing::WithParamInterface<Case> {
 protected:
  std::vector<uint8_t> multiply(const void* x, const void* weight) {
    const auto [n, k, dtype, order] = GetParam();
    const size_t bytes = 3 * static_cast<size_t>(n) * sizeof(float);
    uint8_t* y = marked(bytes);
    gemm(queue(), {counts(3), x, weight, y, nullptr, RowKind::kToken, 0, 3, n, k, dtype,
                   DType::kF32, order == WeightOrder::kGateUp});
    return read(y, bytes);
  }
};

// Pieces in any order, from pinned memory by way of scratch memory and from device memory.
TEST_P(PackRowsTest, EqualsAWeightPackedWhole) {
  const auto [n, k, dtype, order] = GetParam();
  const TypedData w = typed_data(random_floats(size_t(n) * k, 1, 1 / std::sqrt(float(k))), dtype);
  const void* x = upload_typed(typed_data(random_floats(size_t(3) * k, 2), dtype));
  const WeightPart whole{w.data(), n};
  void* packed = device().pack_weight({&whole, 1}, k, dtype, order);
  const auto want = multiply(x, packed);
  device().free_weight(packed);
  const size_t row_bytes = size_t(k) * dtype_size(dtype);
  const auto slice =
      static_cast<int>(std::min<int64_t>(device().weight_slice_rows(n, k, dtype, order), n));
  const std::vector<uint8_t> all =
      order == WeightOrder::kGateUp ? in_slices(w.bytes, n, row_bytes, slice) : w.bytes;
  const int piece = slice * std::max(1, n / slice / 3);
  for (const bool pinned : {true, false}) {
    void* weight = device().make_weight(n, k, dtype, order);
    ASSERT_NE(weight, nullptr);
    for (int first = (n - 1) / piece * piece; first >= 0; first -= piece) {
      const int rows = std::min(piece, n - first);
      const auto* begin = all.data() + size_t(first) * row_bytes;
      const std::vector<uint8_t> bytes(begin, begin + size_t(rows) * row_bytes);
      uint8_t* from = nullptr;
      if (pinned) {
        from = allocate<uint8_t>(bytes.size(), MemoryKind::kPinned);
        std::copy(bytes.begin(), bytes.end(), from);
      } else {
        from = to_device(bytes);
      }
      void* scratch = pinned ? allocate_bytes(bytes.size()) : nullptr;
      pack_rows(queue(), {weight, from, scratch, first, rows, n, k, dtype, order});
    }
    EXPECT_EQ(multiply(x, weight), want) << (pinned ? "pinned" : "device");
    device().free_weight(weight);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PackRowsTest,
                         testing::Values(Case{1, 16, DType::kF32}, Case{64, 192, DType::kBF16},
                                         Case{1000, 512, DType::kF32},
                                         Case{1003, 520, DType::kBF16},
                                         Case{5000, 64, DType::kBF16},
                                         Case{1000, 512, DType::kBF16, WeightOrder::kGateUp},
                                         Case{44, 64, DType::kBF16, WeightOrder::kGateUp},
                                         Case{600, 192, DType::kF32, WeightOrder::kGateUp}));

}  // namespace
}  // namespace foretoken
