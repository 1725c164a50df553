#include "kernels/rows/measure_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr int kMeasureRows = 3, kMeasureStride = 90, kMeasureEntries = 7;

class MeasurePartsTest : public RowOpTest {
 protected:
  MeasurePartsArgs args_of(const void* x, float* entries, PartMeasure measure, int rows = 3) {
    MeasurePartsArgs args{};
    args.counts = counts(rows);
    args.x = x;
    args.entries = entries;
    args.max_rows = kMeasureRows;
    args.stride = kMeasureStride;
    args.num_entries = kMeasureEntries;
    args.measure = measure;
    args.dtype = DType::kF32;
    return args;
  }
  float* stale_entries() {
    return to_device(std::vector<float>(size_t{kMeasureRows} * kMeasureEntries, 5.0f));
  }
  std::vector<float> entries_of(const MeasurePartsArgs& args) {
    measure_parts(queue(), args);
    return read(args.entries, size_t{kMeasureRows} * kMeasureEntries);
  }
};

// Parts of groups, whole ones, and one that is a part of a single group; what none says is 0.
TEST_F(MeasurePartsTest, SquaresOfEachGroup) {
  const auto x = random_floats(size_t{kMeasureRows} * kMeasureStride, 1, 2.0f);
  MeasurePartsArgs args = args_of(to_device(x), stale_entries(), PartMeasure::kSquares, 2);
  args.parts[0] = {.column = 5, .count = 50, .begin = 30, .group = 20, .entry = 0};
  args.parts[1] = {.column = 60, .count = 24, .begin = 0, .group = 96, .entry = 6};
  args.num_parts = 2;
  const auto got = entries_of(args);
  const auto squares = [&](int row, int begin, int end) {
    double sum = 0;
    for (int i = begin; i < end; ++i) sum += std::pow(double(x[row * kMeasureStride + i]), 2);
    return sum;
  };
  for (int row = 0; row < 2; ++row) {
    const double want[] = {0, squares(row, 5, 15), squares(row, 15, 35), squares(row, 35, 55), 0,
                           0, squares(row, 60, 84)};
    for (int i = 0; i < kMeasureEntries; ++i) {
      EXPECT_NEAR(got[row * kMeasureEntries + i], want[i], 1e-4) << row << " " << i;
    }
  }
  EXPECT_EQ(got[2 * kMeasureEntries], 5) << "not live";
}

TEST_F(MeasurePartsTest, NoPartLeavesZeros) {
  MeasurePartsArgs args =
      args_of(to_device(random_floats(size_t{kMeasureRows} * kMeasureStride, 1, 2.0f)),
              stale_entries(), PartMeasure::kSquares);
  EXPECT_EQ(entries_of(args), std::vector<float>(size_t{kMeasureRows} * kMeasureEntries));
}

TEST_F(MeasurePartsTest, MomentsOfAPart) {
  auto x = random_floats(size_t{kMeasureRows} * kMeasureStride, 2, 1.0f);
  for (float& each : x) each += 40;  // where a sum of squares would lose the distances
  MeasurePartsArgs args = args_of(to_device(x), stale_entries(), PartMeasure::kMoments);
  args.parts[0] = {.column = 4, .count = 70, .begin = 0, .group = 70, .entry = 4};
  args.num_parts = 1;
  const auto got = entries_of(args);
  for (int row = 0; row < kMeasureRows; ++row) {
    const float* own = x.data() + row * kMeasureStride + 4;
    double mean = 0, apart = 0;
    for (int i = 0; i < 70; ++i) mean += own[i] / 70.0;
    for (int i = 0; i < 70; ++i) apart += (own[i] - mean) * (own[i] - mean);
    EXPECT_NEAR(got[row * kMeasureEntries + 4], mean, 2e-5) << row;
    EXPECT_NEAR(got[row * kMeasureEntries + 5], apart, 2e-3) << row;
    EXPECT_EQ(got[row * kMeasureEntries + 3], 0);
    EXPECT_EQ(got[row * kMeasureEntries + 6], 0);
  }
}

TEST_F(MeasurePartsTest, TheLargestMagnitudeOrANaN) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    auto plain = random_floats(size_t{kMeasureRows} * kMeasureStride, 3, 2.0f);
    plain[17] = -9.0f;
    plain[kMeasureStride + 20] = std::numeric_limits<float>::quiet_NaN();
    const TypedData x = typed_data(plain, dtype);
    MeasurePartsArgs args = args_of(upload_typed(x), stale_entries(), PartMeasure::kHighest);
    args.dtype = dtype;
    args.parts[0] = {.column = 0, .count = 80, .begin = 0, .group = 80, .entry = 2};
    args.num_parts = 1;
    const auto got = entries_of(args);
    EXPECT_EQ(got[2], 9.0f);
    EXPECT_TRUE(std::isnan(got[kMeasureEntries + 2]));
    float highest = 0;
    for (int i = 0; i < 80; ++i) {
      highest = std::max(highest, std::abs(x.values[2 * kMeasureStride + i]));
    }
    EXPECT_EQ(got[2 * kMeasureEntries + 2], highest);
  }
}

}  // namespace
}  // namespace foretoken
