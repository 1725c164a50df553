#include "kernels/attention/attend_disentangled.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <tuple>

#include "support/row_ops.h"

namespace foretoken {
namespace {

using Row = std::vector<double>;

constexpr int kPlacedHeads = 3, kPlaces = 20, kReach = 30, kPlacedRows = 190;
constexpr int kPlacedLengths[] = {1, 150, 7, 20};

class AttendDisentangledTest : public RowOpTest,
                               public testing::WithParamInterface<std::tuple<int, DType>> {
 protected:
  void SetUp() override {
    RowOpTest::SetUp();
    dim_ = std::get<0>(GetParam());
    for (const int length : kPlacedLengths) {
      for (int i = 0; i < length; ++i) {
        positions_.push_back(i);
        last_.push_back(length - 1);
      }
    }
    positions_.resize(kPlacedRows), last_.resize(kPlacedRows);
    for (int i = -kReach; i <= kReach; ++i) places_.push_back((i + kReach) / 3 % kPlaces);
    const auto table = static_cast<size_t>(kPlacedHeads * kPlaces * dim_);
    qkv_ = random_floats(static_cast<size_t>(kPlacedRows * 3 * kPlacedHeads * dim_), 1);
    keys_ = random_floats(table, 2);
    queries_ = random_floats(table, 3);
  }
  double element(int row, int kind, int head, int c) const {
    return qkv_[static_cast<size_t>(((row * 3 + kind) * kPlacedHeads + head) * dim_ + c)];
  }
  static int place(const std::vector<int32_t>& places, int distance) {
    return places[static_cast<size_t>(std::clamp(distance, -kReach, kReach) + kReach)];
  }
  // What a head of row `first + at` of a text makes of it.
  Row attended(int first, int length, int at, int head) const {
    Row weights, out(static_cast<size_t>(dim_));
    double sum = 0;
    for (int j = 0; j < length; ++j) {
      const int line = (head * kPlaces + place(places_, at - j)) * dim_;
      double score = 0;
      for (int c = 0; c < dim_; ++c) {
        const double q = element(first + at, 0, head, c), k = element(first + j, 1, head, c);
        score += q * k + q * double(keys_[static_cast<size_t>(line + c)]) +
                 k * double(queries_[static_cast<size_t>(line + c)]);
      }
      weights.push_back(std::exp(score * double(kScale)));
      sum += weights.back();
    }
    for (int j = 0; j < length; ++j) {
      for (int c = 0; c < dim_; ++c) {
        out[static_cast<size_t>(c)] +=
            weights[static_cast<size_t>(j)] * element(first + j, 2, head, c) / sum;
      }
    }
    return out;
  }
  // Of rows [begin, end) of the buffers, alone.
  std::vector<float> run(int begin, int end, int max_rows) {
    const DType dtype = std::get<1>(GetParam());
    const size_t width = static_cast<size_t>(kPlacedHeads * dim_), size = size_t(max_rows) * width;
    uint8_t* out = marked(size * dtype_size(dtype));
    const auto from = [&](const std::vector<int32_t>& all) {
      return to_device(std::vector<int32_t>(all.begin() + begin, all.end()));
    };
    const std::vector<float> qkv(qkv_.begin() + ptrdiff_t(3 * width) * begin, qkv_.end());
    attend_disentangled(queue(), {.counts = counts(end - begin),
                                  .qkv = to_device(qkv),
                                  .out = out,
                                  .positions = from(positions_),
                                  .last_seen = from(last_),
                                  .place_keys = to_device(keys_),
                                  .place_queries = to_device(queries_),
                                  .places = to_device(places_),
                                  .reach = kReach,
                                  .num_places = kPlaces,
                                  .max_rows = max_rows,
                                  .num_heads = kPlacedHeads,
                                  .head_dim = dim_,
                                  .scale = kScale,
                                  .dtype = dtype});
    const auto bytes = read(out, size * dtype_size(dtype));
    expect_marked(bytes, size_t(end - begin) * width * dtype_size(dtype));
    return read_typed(out, size_t(end - begin) * width, dtype);
  }

  static constexpr float kScale = 0.2f;
  int dim_ = 0;
  std::vector<int32_t> positions_, last_, places_;
  std::vector<float> qkv_, keys_, queries_;
};

TEST_P(AttendDisentangledTest, RowsSeeTheirTextAndWhereItsKeysStand) {
  const int rows = std::accumulate(std::begin(kPlacedLengths), std::end(kPlacedLengths), 0);
  const std::vector<float> all = run(0, rows, kPlacedRows);
  const double error = std::get<1>(GetParam()) == DType::kF32 ? 1e-5 : 1e-2;
  int first = 0;
  for (const int length : kPlacedLengths) {
    for (int at = 0; at < length; ++at) {
      for (int head = 0; head < kPlacedHeads; ++head) {
        const Row wanted = attended(first, length, at, head);
        for (int c = 0; c < dim_; ++c) {
          const auto place = static_cast<size_t>(((first + at) * kPlacedHeads + head) * dim_ + c);
          ASSERT_NEAR(all[place], wanted[static_cast<size_t>(c)], error)
              << first + at << " " << head << " " << c;
        }
      }
    }
    first += length;
  }
}

TEST_P(AttendDisentangledTest, RowsAreBitEqualAloneAndAmongOthers) {
  const int rows = std::accumulate(std::begin(kPlacedLengths), std::end(kPlacedLengths), 0);
  const std::vector<float> all = run(0, rows, kPlacedRows);
  const auto width = static_cast<size_t>(kPlacedHeads * dim_);
  const int first = kPlacedLengths[0], length = kPlacedLengths[1];
  const std::vector<float> alone = run(first, first + length, kPlacedRows - first);
  const auto from = all.begin() + ptrdiff_t(width) * first;
  EXPECT_EQ(alone, std::vector<float>(from, from + ptrdiff_t(width) * length));
}

// As warm-ups compute some: of texts that begin before the step.
TEST_P(AttendDisentangledTest, NothingIsReadBeforeTheFirstRow) {
  positions_.assign(kPlacedRows, 900);
  last_.assign(kPlacedRows, 900);
  for (const float value : run(0, 4, 4)) EXPECT_TRUE(std::isfinite(value));
}

INSTANTIATE_TEST_SUITE_P(All, AttendDisentangledTest,
                         testing::Combine(testing::Values(8, 64, 128),
                                          testing::Values(DType::kF32, DType::kBF16)));

}  // namespace
}  // namespace foretoken
