#include "kernels/draft/cluster_logits.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

struct Clusters {
  int count;
  int each;
  int top;
};

class ClusterLogitsTest : public RowOpTest {
 protected:
  static constexpr int kRows = 4;

  // Of rows [offset, offset + kRows) of which `live` are.
  void check(const Clusters& clusters, int k, DType dtype, int logits_rows, int offset, int live) {
    const int vocab = clusters.count * clusters.each;
    const TypedData x = typed_data(random_floats(size_t(kRows) * k, 1), dtype);
    const TypedData table = typed_data(random_floats(size_t(vocab) * k, 2), dtype);
    auto scores = random_floats(size_t(kRows) * clusters.count, 3);
    // Ties, of which the lowest cluster counts.
    for (float& score : scores) score = std::round(2 * score);
    std::vector<int32_t> ids(vocab);
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), std::mt19937(4));
    for (int i = 0; i < vocab; i += 7) ids[i] = -1;
    uint8_t* out = marked(size_t(kRows) * vocab * sizeof(float));
    cluster_logits(
        queue(), {counts(99, logits_rows), upload_typed(x), to_device(scores), upload_typed(table),
                  to_device(ids), reinterpret_cast<float*>(out), offset, kRows, clusters.count,
                  clusters.each, clusters.top, k, vocab, dtype});
    const auto bytes = read(out, size_t(kRows) * vocab * sizeof(float));
    const auto got = to_floats(bytes, DType::kF32);
    for (int r = 0; r < live; ++r) {
      const std::vector<float> want = row_of(clusters, k, {x.values, scores, table.values, ids}, r);
      for (int id = 0; id < vocab; ++id) {
        const float logit = got[size_t(r) * vocab + id];
        if (want[id] == kNone) {
          ASSERT_EQ(logit, kNone) << r << " " << id;
        } else {
          ASSERT_NEAR(logit, want[id], 1e-4 * k) << r << " " << id;
        }
      }
    }
    expect_marked(bytes, size_t(live) * vocab * sizeof(float));
  }

 private:
  struct Numbers {
    const std::vector<float>& x;
    const std::vector<float>& scores;
    const std::vector<float>& table;
    const std::vector<int32_t>& ids;
  };

  static std::vector<float> row_of(const Clusters& clusters, int k, const Numbers& numbers, int r) {
    std::vector<int> order(clusters.count);
    std::iota(order.begin(), order.end(), 0);
    const float* scores = numbers.scores.data() + size_t(r) * clusters.count;
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return scores[a] > scores[b]; });
    std::vector<float> row(numbers.ids.size(), kNone);
    for (int i = 0; i < clusters.top * clusters.each; ++i) {
      const int id =
          numbers.ids[size_t(order[i / clusters.each]) * clusters.each + i % clusters.each];
      if (id < 0) continue;
      double sum = 0;
      for (int c = 0; c < k; ++c) {
        sum += double{numbers.x[size_t(r) * k + c]} * numbers.table[size_t(id) * k + c];
      }
      row[id] = static_cast<float>(sum);
    }
    return row;
  }
};

TEST_F(ClusterLogitsTest, MultipliesTheIdsOfTheBestClusters) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    check({8, 16, 2}, 32, dtype, 4, 0, 4);
    check({5, 3, 1}, 20, dtype, 3, 0, 3);
    check({6, 4, 6}, 8, dtype, 2, 0, 2);
    check({2048, 2, 32}, 40, dtype, 2, 0, 2);
  }
}

TEST_F(ClusterLogitsTest, FollowsTheLogitsRowsFromAnOffset) {
  check({8, 4, 3}, 16, DType::kF32, 7, 5, 2);
  check({8, 4, 3}, 16, DType::kF32, 3, 5, 0);
  check({8, 4, 3}, 16, DType::kBF16, 50, 5, 4);
}

}  // namespace
}  // namespace foretoken
