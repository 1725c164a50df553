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
};

class PackRowsTest : public RowOpTest, public testing::WithParamInterface<Case> {
 protected:
  std::vector<uint8_t> multiply(const void* x, const void* weight) {
    const auto [n, k, dtype] = GetParam();
    const size_t bytes = 3 * static_cast<size_t>(n) * sizeof(float);
    uint8_t* y = marked(bytes);
    gemm(queue(),
         {counts(3), x, weight, y, nullptr, RowKind::kToken, 0, 3, n, k, dtype, DType::kF32});
    return read(y, bytes);
  }
};

// Pieces in any order, from pinned memory by way of scratch memory and from device memory.
TEST_P(PackRowsTest, EqualsAWeightPackedWhole) {
  const auto [n, k, dtype] = GetParam();
  const TypedData w = typed_data(random_floats(size_t(n) * k, 1, 1 / std::sqrt(float(k))), dtype);
  const void* x = upload_typed(typed_data(random_floats(size_t(3) * k, 2), dtype));
  const auto want = multiply(x, pack(w.data(), n, k, dtype));
  const size_t row_bytes = size_t(k) * dtype_size(dtype);
  const auto slice =
      static_cast<int>(std::min<int64_t>(device().weight_slice_rows(n, k, dtype), n));
  const int piece = slice * std::max(1, n / slice / 3);
  for (const bool pinned : {true, false}) {
    void* weight = device().make_weight(n, k, dtype);
    ASSERT_NE(weight, nullptr);
    for (int first = (n - 1) / piece * piece; first >= 0; first -= piece) {
      const int rows = std::min(piece, n - first);
      const auto* begin = w.bytes.data() + size_t(first) * row_bytes;
      const std::vector<uint8_t> bytes(begin, begin + size_t(rows) * row_bytes);
      uint8_t* from = nullptr;
      if (pinned) {
        from = allocate<uint8_t>(bytes.size(), MemoryKind::kPinned);
        std::copy(bytes.begin(), bytes.end(), from);
      } else {
        from = to_device(bytes);
      }
      void* scratch = pinned ? allocate_bytes(bytes.size()) : nullptr;
      pack_rows(queue(), {weight, from, scratch, first, rows, k, dtype});
    }
    EXPECT_EQ(multiply(x, weight), want) << (pinned ? "pinned" : "device");
    device().free_weight(weight);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PackRowsTest,
                         testing::Values(Case{1, 16, DType::kF32}, Case{64, 192, DType::kBF16},
                                         Case{1000, 512, DType::kF32},
                                         Case{1003, 520, DType::kBF16},
                                         Case{5000, 64, DType::kBF16}));

}  // namespace
}  // namespace foretoken
