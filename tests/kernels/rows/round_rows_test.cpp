#include "kernels/rows/round_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/float8.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

struct RoundRowsCase {
  int columns;
  DType dtype;
};

class RoundRowsTest : public RowOpTest, public testing::WithParamInterface<RoundRowsCase> {
 protected:
  void SetUp() override {
    RowOpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!is_cpu() && GetParam().dtype != DType::kBF16) GTEST_SKIP() << "rows are bfloat16 here";
  }
  bool is_cpu() { return device().type() == DeviceType::kCpu; }

  // What rows [0, rows) of such a buffer stand for.
  std::vector<float> values_of(const void* rounded, int rows, int max_rows) {
    const auto& [columns, dtype] = GetParam();
    if (is_cpu()) return read_typed(rounded, size_t(rows) * columns, dtype);
    const auto stride = static_cast<size_t>(rounded_columns(columns));
    const auto codes = read(static_cast<const uint8_t*>(rounded), stride * rows);
    const auto groups = stride / kRoundedGroup;
    const auto scale_rows = static_cast<size_t>(rounded_scale_rows(max_rows));
    const auto scales = read(rounded_scales(rounded, max_rows, columns), groups * scale_rows);
    std::vector<float> values;
    for (size_t r = 0; r < size_t(rows); ++r) {
      for (size_t i = 0; i < stride; ++i) {
        if (i >= size_t(columns)) {
          EXPECT_EQ(codes[r * stride + i], 0);
        } else {
          values.push_back(e4m3_value(codes[r * stride + i]) *
                           scales[i / kRoundedGroup * scale_rows + r]);
        }
      }
    }
    return values;
  }
  std::vector<float> round(const void* x, int rows, int max_rows) {
    const auto& [columns, dtype] = GetParam();
    auto* rounded = marked(static_cast<size_t>(rounded_rows_bytes(max_rows, columns, dtype)));
    round_rows(queue(), {counts(rows), x, rounded, RowKind::kToken, 0, max_rows, columns, dtype});
    return values_of(rounded, rows, max_rows);
  }
};

TEST_P(RoundRowsTest, EachGroupHasTheCodesOfItsLargest) {
  const auto& [columns, dtype] = GetParam();
  constexpr int kRows = 5;
  std::vector<float> plain = random_floats(size_t{kRows} * columns, 1, 3.0f);
  std::fill_n(plain.begin() + columns, columns, 0.0f);
  const TypedData x = typed_data(plain, dtype);
  const auto got = round(upload_typed(x), kRows, 7);
  for (int r = 0; r < kRows; ++r) {
    for (int first = 0; first < columns; first += kRoundedGroup) {
      const int count = std::min(kRoundedGroup, columns - first);
      const float* own = &x.values[size_t(r) * columns + first];
      float highest = 0;
      for (int i = 0; i < count; ++i) highest = std::max(highest, std::abs(own[i]));
      const float scale = fp8_group_scale(highest);
      for (int i = 0; i < count; ++i) {
        std::vector<float> want = {e4m3_value(e4m3_code(own[i] / scale)) * scale};
        if (is_cpu()) want = typed_data(want, dtype).values;
        ASSERT_EQ(got[size_t(r) * columns + first + i], want[0]) << r << " " << first + i;
        ASSERT_NEAR(want[0], own[i], std::max(std::abs(own[i]) / 15, scale / 512));
      }
    }
  }
}

// All groups by one scale; what is beyond the largest code becomes that.
TEST_P(RoundRowsTest, AGivenScaleIsTaken) {
  const auto& [columns, dtype] = GetParam();
  constexpr int kRows = 3;
  constexpr float kScale = 0.0078f;
  const TypedData x = typed_data(random_floats(size_t{kRows} * columns, 5, 6.0f), dtype);
  auto* rounded = marked(static_cast<size_t>(rounded_rows_bytes(kRows, columns, dtype)));
  RoundRowsArgs args{counts(kRows), upload_typed(x), rounded, RowKind::kToken, 0,
                     kRows,         columns,         dtype};
  args.scale = kScale;
  round_rows(queue(), args);
  const auto got = values_of(rounded, kRows, kRows);
  bool is_cut = false;
  for (size_t i = 0; i < got.size(); ++i) {
    std::vector<float> want = {e4m3_value(e4m3_code(x.values[i] / kScale)) * kScale};
    is_cut = is_cut || std::abs(x.values[i]) > kScale * kMaxE4m3;
    if (is_cpu()) want = typed_data(want, dtype).values;
    ASSERT_EQ(got[i], want[0]) << i;
  }
  EXPECT_TRUE(is_cut);
}

TEST_P(RoundRowsTest, RowsAreBitEqualAloneAndInABatch) {
  const auto& [columns, dtype] = GetParam();
  constexpr int kRows = 3;
  const TypedData x = typed_data(random_floats(size_t{kRows} * columns, 2, 9.0f), dtype);
  const auto* memory = static_cast<const uint8_t*>(upload_typed(x));
  const auto together = round(memory, kRows, kRows);
  for (int r = 0; r < kRows; ++r) {
    const size_t bytes = size_t(r) * columns * dtype_size(dtype);
    const std::vector<uint8_t> own(x.bytes.begin() + bytes,
                                   x.bytes.begin() + bytes + columns * dtype_size(dtype));
    const auto alone = round(to_device(own), 1, 1);
    ASSERT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + r * columns)) << r;
  }
}

// Values of whole rows, in the type of the rows on every device.
TEST_P(RoundRowsTest, WholeRowsBecomeMultiplesOfTheirLargest) {
  const auto& [columns, dtype] = GetParam();
  constexpr int kRows = 4;
  std::vector<float> plain = random_floats(size_t{kRows} * columns, 4, 3.0f);
  std::fill_n(plain.begin() + columns, columns, 0.0f);
  plain[0] = -8.0f;
  const TypedData x = typed_data(plain, dtype);
  auto* rounded = marked(static_cast<size_t>(rounded_rows_bytes(kRows, columns, dtype)));
  round_rows(queue(), {counts(kRows), upload_typed(x), rounded, RowKind::kToken, 0, kRows, columns,
                       dtype, 1, RowRounding::kInt8});
  const auto got = read_typed(rounded, size_t(kRows) * columns, dtype);
  for (int r = 0; r < kRows; ++r) {
    const float* own = &x.values[size_t(r) * columns];
    float highest = kLeastInt8Row;
    for (int i = 0; i < columns; ++i) highest = std::max(highest, std::abs(own[i]));
    const float scale = 127.0f / highest;
    std::vector<float> want(static_cast<size_t>(columns));
    for (int i = 0; i < columns; ++i) {
      want[size_t(i)] = std::min(std::nearbyint(own[i] * scale), 127.0f) / scale;
    }
    want = typed_data(want, dtype).values;
    for (int i = 0; i < columns; ++i) {
      ASSERT_EQ(got[size_t(r) * columns + i], want[size_t(i)]) << r << " " << i;
    }
  }
}

// Of a row that other ranks have parts of: by the largest magnitude of all, which is told.
TEST_P(RoundRowsTest, PartsOfRowsGoByTheLargestThatIsTold) {
  const auto& [columns, dtype] = GetParam();
  constexpr int kRows = 3, kTold = 2, kEntries = 4;
  const TypedData x = typed_data(random_floats(size_t{kRows} * columns, 6, 3.0f), dtype);
  const std::vector<float> told = {4, 16, 99, 99, 32, 8, 99, 99, 0, 0, 99, 99};
  auto* rounded = marked(static_cast<size_t>(rounded_rows_bytes(kRows, columns, dtype)));
  RoundRowsArgs args{counts(kRows), upload_typed(x), rounded, RowKind::kToken, 0,
                     kRows,         columns,         dtype};
  args.rounding = RowRounding::kInt8;
  args.highest = to_device(told);
  args.num_highest = kTold;
  args.num_entries = kEntries;
  round_rows(queue(), args);
  const auto got = read_typed(rounded, size_t(kRows) * columns, dtype);
  const float highest[] = {16, 32, kLeastInt8Row};
  for (int i = 0; i < kRows * columns; ++i) {
    const float scale = 127.0f / highest[i / columns];
    const float code = std::min(std::nearbyint(x.values[size_t(i)] * scale), 127.0f);
    ASSERT_EQ(got[size_t(i)], typed_data({code / scale}, dtype).values[0]) << i;
  }
}

// As entries of experts are: two for each row of the step.
TEST_P(RoundRowsTest, LiveRowsMayHaveSeveral) {
  const auto& [columns, dtype] = GetParam();
  constexpr int kRows = 6, kLive = 2;
  const TypedData x = typed_data(random_floats(size_t{kRows} * columns, 3), dtype);
  const void* memory = upload_typed(x);
  const auto bytes = static_cast<size_t>(rounded_rows_bytes(kRows, columns, dtype));
  const auto want = round(memory, kRows, kRows);
  uint8_t* rounded = marked(bytes);
  round_rows(queue(),
             {counts(kLive), memory, rounded, RowKind::kToken, 0, kRows, columns, dtype, 2});
  const auto got = values_of(rounded, 2 * kLive, kRows);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), want.begin()));
  const size_t row_bytes = is_cpu() ? size_t(columns) * dtype_size(dtype)
                                    : static_cast<size_t>(rounded_columns(columns));
  const auto row = read(rounded + 2 * kLive * row_bytes, row_bytes);
  expect_marked(row, 0);
}

TEST_P(RoundRowsTest, WhatIsNoNumberMakesItsGroupNone) {
  const auto& [columns, dtype] = GetParam();
  for (const float odd : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    std::vector<float> plain(size_t{2} * columns, 1.0f);
    plain[0] = odd;
    const auto got = round(upload_typed(typed_data(plain, dtype)), 2, 2);
    for (int i = 0; i < 2 * columns; ++i) {
      ASSERT_EQ(std::isnan(got[size_t(i)]), i < std::min(columns, kRoundedGroup)) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, RoundRowsTest,
                         testing::Values(RoundRowsCase{64, DType::kBF16},
                                         RoundRowsCase{1000, DType::kBF16},
                                         RoundRowsCase{2304, DType::kBF16},
                                         RoundRowsCase{300, DType::kF32}));

}  // namespace
}  // namespace foretoken
