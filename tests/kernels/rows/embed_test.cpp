#include "kernels/rows/embed.h"

#include "kernels/rows/rms_norm.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

class EmbedTest : public RowOpTest, public testing::WithParamInterface<DType> {};

TEST_P(EmbedTest, WidensAndScalesLiveRowsAndBoundsIds) {
  constexpr int kVocab = 11, kHidden = 37, kMaxRows = 6;
  const TypedData table = typed_data(random_floats(kVocab * kHidden, 1), GetParam());
  const std::vector<int32_t> ids = {3, 10, -1, 11, 0, 5};
  uint8_t* out = marked(kMaxRows * kHidden * sizeof(float));
  for (const int rows : {0, 1, 5}) {
    const float scale = rows == 1 ? 1.0f : 55.5f;
    embed(queue(), {counts(rows), to_device(ids), upload_typed(table),
                    reinterpret_cast<float*>(out), kMaxRows, kVocab, kHidden, GetParam(), scale});
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
    const void* rows = upload_typed(table);
    const float* weight = to_device(random_floats(hidden, 3));
    float* plain = allocate<float>(size_t(kMaxRows) * hidden);
    float* out = allocate<float>(size_t(kMaxRows) * hidden);
    const size_t bytes = size_t(kMaxRows) * hidden * dtype_size(GetParam());
    uint8_t* want = marked(bytes);
    uint8_t* got = marked(bytes);
    EmbedArgs args{live, ids, rows, plain, kMaxRows, kVocab, hidden, GetParam(), 3.5f};
    embed(queue(), args);
    rms_norm(queue(),
             {live, plain, nullptr, weight, want, nullptr, 0, kMaxRows, hidden, 1e-5f, GetParam()});
    args.out = out;
    args.norm_weight = weight;
    args.normed = got;
    args.eps = 1e-5f;
    embed(queue(), args);
    EXPECT_EQ(read(out, size_t(kRows) * hidden), read(plain, size_t(kRows) * hidden)) << hidden;
    EXPECT_EQ(read(got, bytes), read(want, bytes)) << hidden;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, EmbedTest, testing::Values(DType::kF32, DType::kBF16));

}  // namespace
}  // namespace foretoken
