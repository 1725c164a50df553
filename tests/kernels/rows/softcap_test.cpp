#include "kernels/rows/softcap.h"

#include <cmath>
#include <limits>

#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr float kCap = 30.0f;

class SoftcapTest : public RowOpTest, public testing::WithParamInterface<int> {
 protected:
  static std::vector<float> input(size_t count) {
    auto x = random_floats(count, 1, 20.0f);
    x[0] = std::numeric_limits<float>::infinity();
    x[1] = -1e30f;
    x[2] = 0.0f;
    x[3] = 1e-3f;
    return x;
  }
};

TEST_P(SoftcapTest, MatchesDoubleOnTokenRows) {
  const int size = GetParam();
  constexpr int kMaxRows = 4, kRows = 3;
  const auto x = input(size_t{kMaxRows} * size);
  float* memory = to_device(x);
  softcap(queue(), {counts(kRows), memory, RowKind::kToken, 0, kMaxRows, size, kCap});
  const auto y = read(memory, x.size());
  for (int i = 0; i < kRows * size; ++i) {
    const double want = kCap * std::tanh(double(x[i]) / kCap);
    ASSERT_NEAR(y[i], want, std::abs(want) * 1e-6) << x[i];
  }
  for (int i = kRows * size; i < kMaxRows * size; ++i) ASSERT_EQ(y[i], x[i]) << i;
}

TEST_P(SoftcapTest, FollowsTheLogitsRowsFromAnOffset) {
  const int size = GetParam();
  const auto x = input(size_t{4} * size);
  float* memory = to_device(x);
  softcap(queue(), {counts(9, 5), memory, RowKind::kLogits, 3, 4, size, kCap});
  const auto y = read(memory, x.size());
  for (int i = 0; i < 4 * size; ++i) {
    const double want = i < 2 * size ? kCap * std::tanh(double(x[i]) / kCap) : double(x[i]);
    ASSERT_NEAR(y[i], want, i < 2 * size ? std::abs(want) * 1e-6 : 0.0) << i;
  }
}

TEST_P(SoftcapTest, RowsAreBitEqualAloneAndInABatch) {
  const int size = GetParam();
  constexpr int kRows = 3;
  const auto x = input(size_t{kRows} * size);
  float* memory = to_device(x);
  softcap(queue(), {counts(kRows), memory, RowKind::kToken, 0, kRows, size, kCap});
  const auto together = read(memory, x.size());
  for (int r = 0; r < kRows; ++r) {
    float* row = to_device(std::vector<float>(x.begin() + r * size, x.begin() + (r + 1) * size));
    softcap(queue(), {counts(1), row, RowKind::kToken, 0, 1, size, kCap});
    const auto alone = read(row, size);
    ASSERT_EQ(std::memcmp(alone.data(), together.data() + r * size, size * sizeof(float)), 0) << r;
  }
}

TEST_P(SoftcapTest, ScalesBeforeItCaps) {
  const int size = GetParam();
  const auto x = random_floats(size, 3, 20.0f);
  for (const float cap : {0.0f, kCap}) {
    float* memory = to_device(x);
    softcap(queue(), {counts(1), memory, RowKind::kToken, 0, 1, size, cap, 0.3f});
    const auto y = read(memory, x.size());
    for (int i = 0; i < size; ++i) {
      const double scaled = double(x[i]) * 0.3f;
      const double want = cap > 0 ? cap * std::tanh(scaled / cap) : scaled;
      ASSERT_NEAR(y[i], want, std::abs(want) * 1e-6) << x[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, SoftcapTest, testing::Values(5, 64, 1003, 9001));

}  // namespace
}  // namespace foretoken
