#include "kernels/rows/embed.h"

#include "kernels/gemm/pack_rows.h"
#include "kernels/rows/rms_norm.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

// By the type of the table.
class EmbedTest : public RowOpTest, public testing::WithParamInterface<DType> {
 protected:
  static DType out_dtype() { return GetParam() == DType::kF16 ? DType::kF32 : GetParam(); }
  RowTable upload_table(const TypedData& table) { return {upload_typed(table), GetParam()}; }
};

TEST_P(EmbedTest, WidensAndScalesLiveRowsAndBoundsIds) {
  constexpr int kVocab = 11, kHidden = 37, kMaxRows = 6;
  const TypedData table = typed_data(random_floats(kVocab * kHidden, 1), GetParam());
  const std::vector<int32_t> ids = {3, 10, -1, 11, 0, 5};
  uint8_t* out = marked(kMaxRows * kHidden * sizeof(float));
  for (const int rows : {0, 1, 5}) {
    const float scale = rows == 1 ? 1.0f : 55.5f;
    embed(queue(), {counts(rows), to_device(ids), upload_table(table),
                    reinterpret_cast<float*>(out), kMaxRows, kVocab, kHidden, out_dtype(), scale});
    const auto bytes = read(out, kMaxRows * kHidden * sizeof(float));
    const auto values = to_floats(bytes, DType::kF32);
    for (int r = 0; r < rows; ++r) {
      const int id = ids[r] >= 0 && ids[r] < kVocab ? ids[r] : 0;
      for (int i = 0; i < kHidden; ++i) {
        ASSERT_EQ(values[r * kHidden + i], table.values[id * kHidden + i] * scale) << r << " " << i;
      }
    }
    expect_marked(bytes, rows * kHidden * sizeof(float));
  }
}

// The norm has the bits that rms_norm would make of the rows.
TEST_P(EmbedTest, NormsItsRows) {
  constexpr int kVocab = 9, kMaxRows = 5, kRows = 4;
  for (const int hidden : {37, 64, 1000, 4096}) {
    const TypedData table = typed_data(random_floats(size_t(kVocab) * hidden, 2), GetParam());
    const StepCounts* live = counts(kRows);
    const int32_t* ids = to_device(std::vector<int32_t>{3, 8, -1, 0, 5});
    const RowTable rows = upload_table(table);
    const float* weight = to_device(random_floats(hidden, 3));
    float* plain = allocate<float>(size_t(kMaxRows) * hidden);
    float* out = allocate<float>(size_t(kMaxRows) * hidden);
    const size_t bytes = size_t(kMaxRows) * hidden * dtype_size(out_dtype());
    uint8_t* want = marked(bytes);
    uint8_t* got = marked(bytes);
    EmbedArgs args{live, ids, rows, plain, kMaxRows, kVocab, hidden, out_dtype(), 3.5f};
    embed(queue(), args);
    rms_norm(queue(), {live, plain, nullptr, weight, want, nullptr, 0, kMaxRows, hidden, 1e-5f,
                       out_dtype()});
    args.out = out;
    args.norm_weight = weight;
    args.normed = got;
    args.eps = 1e-5f;
    embed(queue(), args);
    EXPECT_EQ(read(out, size_t(kRows) * hidden), read(plain, size_t(kRows) * hidden)) << hidden;
    EXPECT_EQ(read(got, bytes), read(want, bytes)) << hidden;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, EmbedTest, testing::Values(DType::kF32, DType::kBF16, DType::kF16));

using EmbedOfWeight = RowOpTest;

// Rows of a weight of halves, in slices and groups that the last ones do not fill.
TEST_F(EmbedOfWeight, ReadsTheRowsThatItLends) {
  constexpr int kVocab = 2700, kHidden = 100, kRows = 5;
  constexpr QuantForm kHalves{16, GroupScale::kNone, 1};
  if (!device().keeps_quantized(kHalves, kHidden, DType::kF32)) GTEST_SKIP() << "no halves";
  const TypedData table = typed_data(random_floats(size_t(kVocab) * kHidden, 4), DType::kF16);
  const QuantizedPart part{kHalves, kVocab};
  const QuantizedWeight weight =
      device().make_quantized_weight({&part, 1}, kHidden, DType::kF32, WeightOrder::kPlain);
  ASSERT_NE(weight.handle, nullptr);
  PackRowsArgs pack;
  pack.weight = weight.handle;
  pack.rows = upload_typed(table);
  pack.num_rows = pack.n = kVocab;
  pack.k = kHidden;
  pack.slice_rows = weight.slice_rows;
  pack.dtype = DType::kF32;
  pack_rows(queue(), pack);
  const RowTable lent = device().rows_of_weight(weight.handle);
  ASSERT_TRUE(lent.makes(DType::kF32));
  const int32_t* ids = to_device(std::vector<int32_t>{0, kVocab - 1, 17, 1300, kVocab});
  float* want = allocate<float>(kRows * kHidden);
  float* got = allocate<float>(kRows * kHidden);
  EmbedArgs args{counts(kRows), ids,         {upload_typed(table), DType::kF16},
                 want,          kRows,       kVocab,
                 kHidden,       DType::kF32, 2.5f};
  embed(queue(), args);
  args.table = lent;
  args.out = got;
  embed(queue(), args);
  EXPECT_EQ(read(got, kRows * kHidden), read(want, kRows * kHidden));
  device().free_weight(weight.handle);
}

}  // namespace
}  // namespace foretoken
