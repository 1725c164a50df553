#include "kernels/rows/mix_streams.h"

#include <cmath>
#include <cstring>

#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr int kStreamRows = 5, kActive = 1;

struct Streams {
  int count;
  int size;
};

class MixStreamsTest : public RowOpTest, public testing::WithParamInterface<Streams> {
 protected:
  void SetUp() override {
    RowOpTest::SetUp();
    const auto [count, size] = GetParam();
    streams_ = random_floats(size_t{kStreamRows} * count * size, 1);
    routed_ = random_floats(size_t{kStreamRows} * count, 2, 3.0f);
    predict_ = random_floats(size_t(count) * count * count, 3);
    correct_ = random_floats(size_t(count) * count, 4);
    activated_ = random_floats(size_t{kStreamRows} * size, 5);
    scale_ = random_floats(size_t(size), 6);
  }

  // Rows from `first` on; what is left in the streams, then out.
  std::vector<float> run(bool corrects, int first, int rows, bool scales) {
    const auto [count, size] = GetParam();
    const auto rows_of = [&](const std::vector<float>& all, int width) {
      return to_device(std::vector<float>(all.begin() + first * width, all.end()));
    };
    float* streams = to_device(streams_);
    float* out = allocate<float>(size_t(rows) * size);
    mix_streams(queue(), {.counts = counts(rows),
                          .streams = streams + first * size,
                          .routed = rows_of(routed_, count),
                          .weights = to_device(corrects ? correct_ : predict_),
                          .activated = corrects ? rows_of(activated_, size) : nullptr,
                          .out = out,
                          .out_scale = scales ? to_device(scale_) : nullptr,
                          .num_streams = count,
                          .active = kActive,
                          .max_rows = rows,
                          .stream_rows = kStreamRows,
                          .size = size,
                          .scale = 0.25f});
    std::vector<float> all = read(streams, streams_.size());
    const std::vector<float> written = read(out, size_t(rows) * size);
    all.insert(all.end(), written.begin(), written.end());
    return all;
  }

  double factor(const std::vector<float>& weights, int row, int index, double from) const {
    const int count = GetParam().count;
    double sum = from;
    for (int p = 0; p < count; ++p) {
      sum += weights[index * count + p] * std::tanh(0.25 * routed_[row * count + p]);
    }
    return sum;
  }
  size_t place(int stream, int row, int column) const {
    return (size_t(stream) * kStreamRows + row) * GetParam().size + column;
  }
  double wanted(bool corrects, int stream, int row, int column) const {
    const double own = streams_[place(stream, row, column)];
    if (corrects) {
      const double innovation = double(activated_[size_t(row) * GetParam().size + column]) -
                                streams_[place(kActive, row, column)];
      return own + factor(correct_, row, stream, 1) * innovation;
    }
    double sum = own;
    for (int j = 0; j < GetParam().count; ++j) {
      sum +=
          factor(predict_, row, stream * GetParam().count + j, 0) * streams_[place(j, row, column)];
    }
    return sum;
  }

  std::vector<float> streams_, routed_, predict_, correct_, activated_, scale_;
};

TEST_P(MixStreamsTest, MatchesDouble) {
  const auto [count, size] = GetParam();
  constexpr int kRows = 4;
  for (const bool corrects : {false, true}) {
    const auto all = run(corrects, 0, kRows, corrects);
    for (int s = 0; s < count; ++s) {
      for (int r = 0; r < kRows; ++r) {
        for (int c = 0; c < size; ++c) {
          ASSERT_NEAR(all[place(s, r, c)], wanted(corrects, s, r, c), 2e-5) << s << " " << r;
        }
      }
      for (int c = 0; c < size; ++c) {
        ASSERT_EQ(all[place(s, kRows, c)], streams_[place(s, kRows, c)]);
      }
    }
    for (int i = 0; i < kRows * size; ++i) {
      const float active = all[place(kActive, i / size, i % size)];
      ASSERT_EQ(all[streams_.size() + i], corrects ? active * scale_[i % size] : active) << i;
    }
  }
}

TEST_P(MixStreamsTest, RowsAreBitEqualAloneAndInABatch) {
  const auto [count, size] = GetParam();
  for (const bool corrects : {false, true}) {
    const auto together = run(corrects, 0, kStreamRows, true);
    for (int r = 0; r < kStreamRows; ++r) {
      const auto alone = run(corrects, r, 1, true);
      for (int s = 0; s < count; ++s) {
        const size_t at = place(s, r, 0);
        ASSERT_EQ(std::memcmp(&alone[at], &together[at], size * sizeof(float)), 0) << r;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, MixStreamsTest,
                         testing::Values(Streams{2, 5}, Streams{3, 32}, Streams{4, 700},
                                         Streams{8, 64}));

}  // namespace
}  // namespace foretoken
