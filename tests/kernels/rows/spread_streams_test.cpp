#include "kernels/rows/spread_streams.h"

#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr int kSpreadRows = 3, kSpreadMost = 4, kSpreadSize = 300;

class SpreadStreamsTest : public RowOpTest, public testing::WithParamInterface<int> {
 protected:
  // What the streams are behind the op.
  std::vector<float> run(const std::vector<float>& streams, const std::vector<float>& made,
                         const std::vector<float>* weights) {
    float* all = to_device(streams);
    spread_streams(queue(), {.counts = counts(kSpreadRows),
                             .made = to_device(made),
                             .weights = weights != nullptr ? to_device(*weights) : nullptr,
                             .streams = all,
                             .num_streams = GetParam(),
                             .max_rows = kSpreadMost,
                             .size = kSpreadSize});
    return read(all, streams.size());
  }
};

TEST_P(SpreadStreamsTest, StreamsGetTheirShareOfWhatWasMadeAndOfEachOther) {
  const int count = GetParam(), width = count * kSpreadSize, each = count * (1 + count);
  const auto streams = random_floats(size_t(kSpreadMost * width), 1);
  const auto made = random_floats(size_t{kSpreadMost} * kSpreadSize, 2);
  const auto weights = random_floats(size_t(kSpreadMost * each), 3);
  const auto got = run(streams, made, &weights);
  for (int r = 0; r < kSpreadRows; ++r) {
    const float* own = &weights[size_t(r * each)];
    for (int s = 0; s < count; ++s) {
      for (int c = 0; c < kSpreadSize; ++c) {
        double want = double(own[s]) * double(made[size_t(r * kSpreadSize + c)]);
        for (int j = 0; j < count; ++j) {
          want += double(own[count + j * count + s]) *
                  double(streams[size_t(r * width + j * kSpreadSize + c)]);
        }
        ASSERT_NEAR(got[size_t(r * width + s * kSpreadSize + c)], want, 1e-5) << r << " " << s;
      }
    }
  }
  for (size_t i = size_t(kSpreadRows * width); i < got.size(); ++i) ASSERT_EQ(got[i], streams[i]);
}

TEST_P(SpreadStreamsTest, WithoutWeightsEveryStreamIsWhatWasMade) {
  const int count = GetParam(), width = count * kSpreadSize;
  const auto streams = random_floats(size_t(kSpreadMost * width), 1);
  const auto made = random_floats(size_t{kSpreadMost} * kSpreadSize, 2);
  const auto got = run(streams, made, nullptr);
  for (int i = 0; i < kSpreadRows * width; ++i) {
    const int row = i / width, column = i % kSpreadSize;
    ASSERT_EQ(got[size_t(i)], made[size_t(row * kSpreadSize + column)]);
  }
  for (size_t i = size_t(kSpreadRows * width); i < got.size(); ++i) ASSERT_EQ(got[i], streams[i]);
}

INSTANTIATE_TEST_SUITE_P(All, SpreadStreamsTest, testing::Values(2, 4));

}  // namespace
}  // namespace foretoken
