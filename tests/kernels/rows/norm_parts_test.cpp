#include "kernels/rows/norm_parts.h"

#include <cmath>

#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr int kPartRows = 3, kPartStride = 40, kPartEntries = 5;
constexpr float kPartEps = 1e-5f;

class NormPartsTest : public RowOpTest, public testing::WithParamInterface<DType> {};

// Columns 2 to 13 are elements 6 to 17 of rows of groups of 8; columns 20 to 29 a part of one of 32
// without weights; the other columns stay.
TEST_P(NormPartsTest, EachGroupByItsSquares) {
  const auto x = random_floats(size_t{kPartRows} * kPartStride, 1, 2.0f);
  auto entries = random_floats(size_t{kPartRows} * kPartEntries, 2, 3.0f);
  for (float& each : entries) each = std::abs(each) + 1;
  const auto weights = random_floats(12, 3);
  NormPartsArgs args{};
  args.counts = counts(2);
  args.x = to_device(x);
  args.entries = to_device(entries);
  args.out = marked(x.size() * dtype_size(GetParam()));
  args.parts[0] = {.column = 2, .count = 12, .begin = 6, .group = 8, .entry = 0};
  args.parts[1] = {.column = 20, .count = 10, .begin = 10, .group = 32, .entry = 4};
  args.weights[0] = to_device(weights);
  args.num_parts = 2;
  args.max_rows = kPartRows;
  args.stride = kPartStride;
  args.num_entries = kPartEntries;
  args.eps = kPartEps;
  args.out_dtype = GetParam();
  norm_parts(queue(), args);
  const auto got = read_typed(args.out, x.size(), GetParam());
  const float untouched = read_typed(marked(4), 1, GetParam())[0];
  for (int row = 0; row < kPartRows; ++row) {
    for (int i = 0; i < kPartStride; ++i) {
      const int at = row * kPartStride + i;
      const bool first = i >= 2 && i < 14, second = i >= 20 && i < 30;
      if (row == 2 || (!first && !second)) {
        EXPECT_EQ(got[at], untouched) << row << " " << i;
        continue;
      }
      const int entry = first ? (i - 2 + 6) / 8 : 4, group = first ? 8 : 32;
      double want = x[at] / std::sqrt(double(entries[row * kPartEntries + entry]) / group + 1e-5);
      if (first) want *= weights[i - 2];
      EXPECT_NEAR(got[at], want, std::abs(want) * storage_error(GetParam()) + 1e-6)
          << row << " " << i;
    }
  }
}

TEST_P(NormPartsTest, FloatsMayBeNormedInPlace) {
  if (GetParam() != DType::kF32) GTEST_SKIP() << "rows are floats";
  auto x = random_floats(size_t{kPartRows} * kPartStride, 4, 2.0f);
  float* memory = to_device(x);
  NormPartsArgs args{};
  args.counts = counts(kPartRows);
  args.x = memory;
  args.entries = to_device(std::vector<float>(kPartRows, 36.0f));
  args.out = memory;
  args.parts[0] = {
      .column = 0, .count = kPartStride, .begin = 0, .group = 4 * kPartStride, .entry = 0};
  args.num_parts = 1;
  args.max_rows = kPartRows;
  args.stride = kPartStride;
  args.num_entries = 1;
  args.out_dtype = DType::kF32;
  norm_parts(queue(), args);
  const auto got = read(memory, x.size());
  const double factor = 1 / std::sqrt(36.0 / (4 * kPartStride));
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(got[i], x[i] * factor, 1e-5) << i;
}

INSTANTIATE_TEST_SUITE_P(Types, NormPartsTest, testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& test) {
                           return test.param == DType::kF32 ? "float32" : "bfloat16";
                         });

}  // namespace
}  // namespace foretoken
