#include "kernels/rows/move_rows.h"

#include <limits>
#include <tuple>

#include "support/row_ops.h"

namespace foretoken {
namespace {

class MoveRowsTest : public RowOpTest,
                     public testing::WithParamInterface<std::tuple<DType, DType, int>> {
 protected:
  static constexpr int kRows = 6;
  DType in_dtype() const { return std::get<0>(GetParam()); }
  DType out_dtype() const { return std::get<1>(GetParam()); }
  int width() const { return std::get<2>(GetParam()); }

  // Moves the live rows of kRows random ones and checks every byte of the output.
  void check(const std::vector<int32_t>* from, const std::vector<int32_t>* to, int live,
             RowKind kind, int stride, int offset) {
    auto values = random_floats(size_t(kRows) * width(), 3);
    values[0] = std::numeric_limits<float>::infinity();
    values[width() - 1] = -0.0f;
    const TypedData in = typed_data(values, in_dtype());
    const size_t bytes = size_t(kRows) * stride * dtype_size(out_dtype());
    uint8_t* out = marked(bytes);
    const StepCounts* count = kind == RowKind::kToken ? counts(live, 99) : counts(99, live);
    move_rows(queue(), {count, upload_typed(in), out, from != nullptr ? to_device(*from) : nullptr,
                        to != nullptr ? to_device(*to) : nullptr, kind, kRows, width(), stride,
                        offset, in_dtype(), out_dtype()});
    std::vector<uint8_t> want(bytes, 0x5a);
    for (int r = 0; r < std::min(live, kRows); ++r) {
      const int source = from != nullptr ? (*from)[r] : r, target = to != nullptr ? (*to)[r] : r;
      const std::vector<float> row(in.values.begin() + source * width(),
                                   in.values.begin() + (source + 1) * width());
      const TypedData converted = typed_data(row, out_dtype());
      std::copy(converted.bytes.begin(), converted.bytes.end(),
                want.begin() + (size_t(target) * stride + offset) * dtype_size(out_dtype()));
    }
    ASSERT_EQ(read(out, bytes), want);
  }
};

TEST_P(MoveRowsTest, GathersScattersAndCasts) {
  const std::vector<int32_t> from = {5, 5, 0, 2, 1, 3}, to = {3, 0, 4, 1, 5, 2};
  for (const int live : {0, 1, 4, 6}) {
    check(nullptr, nullptr, live, RowKind::kToken, width(), 0);
    check(&from, nullptr, live, RowKind::kToken, width(), 0);
    check(nullptr, &to, live, RowKind::kLogits, width(), 0);
    check(&from, &to, live, RowKind::kToken, width(), 0);
  }
}

TEST_P(MoveRowsTest, ReadsASliceOfWiderRows) {
  const int stride = 2 * width() + 3;
  const TypedData in = typed_data(random_floats(size_t(kRows) * stride, 4), in_dtype());
  const auto* slice = static_cast<const uint8_t*>(upload_typed(in)) + 3 * dtype_size(in_dtype());
  const size_t bytes = size_t(kRows) * width() * dtype_size(out_dtype());
  uint8_t* out = marked(bytes);
  // The last row is read no further than its slice.
  move_rows(queue(), {counts(kRows, 0), slice, out, nullptr, nullptr, RowKind::kToken, kRows,
                      width(), width(), 0, in_dtype(), out_dtype(), stride});
  std::vector<float> want;
  for (int r = 0; r < kRows; ++r) {
    const auto begin = in.values.begin() + r * stride + 3;
    want.insert(want.end(), begin, begin + width());
  }
  ASSERT_EQ(read(out, bytes), typed_data(want, out_dtype()).bytes);
}

TEST_P(MoveRowsTest, WritesASliceOfWiderRows) {
  const std::vector<int32_t> to = {3, 0, 4, 1, 5, 2};
  check(nullptr, &to, 5, RowKind::kToken, 3 * width(), width());
  check(nullptr, &to, 5, RowKind::kToken, 2 * width() + 1, width() + 1);
}

TEST_P(MoveRowsTest, MoreLiveRowsThanTheCallsAreNotMoved) {
  check(nullptr, nullptr, 50, RowKind::kLogits, width(), 0);
}

INSTANTIATE_TEST_SUITE_P(Types, MoveRowsTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16),
                                          testing::Values(DType::kF32, DType::kBF16),
                                          testing::Values(1, 37, 64, 3000)));

}  // namespace
}  // namespace foretoken
