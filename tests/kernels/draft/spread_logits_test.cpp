#include "kernels/draft/spread_logits.h"

#include <limits>

#include "support/row_ops.h"

namespace foretoken {
namespace {

class SpreadLogitsTest : public RowOpTest {
 protected:
  static constexpr int kRows = 4;

  void check(int n, int vocab, int logits_rows, int offset, int live) {
    const auto in = random_floats(size_t(kRows) * n, 7);
    std::vector<int32_t> id_map(n);
    for (int i = 0; i < n; ++i) id_map[i] = i % 4 == 2 ? -1 : vocab - 1 - i * (vocab / n);
    uint8_t* out = marked(size_t(kRows) * vocab * sizeof(float));
    spread_logits(queue(), {counts(99, logits_rows), to_device(in), to_device(id_map),
                            reinterpret_cast<float*>(out), offset, kRows, n, vocab});
    const auto bytes = read(out, size_t(kRows) * vocab * sizeof(float));
    const auto got = to_floats(bytes, DType::kF32);
    for (int r = 0; r < live; ++r) {
      std::vector<float> want(vocab, -std::numeric_limits<float>::infinity());
      for (int i = 0; i < n; ++i) {
        if (id_map[i] >= 0) want[id_map[i]] = in[size_t(r) * n + i];
      }
      ASSERT_TRUE(std::equal(want.begin(), want.end(), got.begin() + size_t(r) * vocab)) << r;
    }
    expect_marked(bytes, size_t(live) * vocab * sizeof(float));
  }
};

TEST_F(SpreadLogitsTest, LaysOutByTargetIds) {
  check(10, 50, 4, 0, 4);
  check(300, 5000, 2, 0, 2);
  check(64, 64, 3, 0, 3);
  check(1, 9, 0, 0, 0);
}

TEST_F(SpreadLogitsTest, FollowsTheLogitsRowsFromAnOffset) {
  check(20, 100, 7, 5, 2);
  check(20, 100, 3, 5, 0);
  check(20, 100, 50, 5, 4);
}

}  // namespace
}  // namespace foretoken
