#include "kernels/embed.h"

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

INSTANTIATE_TEST_SUITE_P(Types, EmbedTest, testing::Values(DType::kF32, DType::kBF16));

}  // namespace
}  // namespace foretoken
