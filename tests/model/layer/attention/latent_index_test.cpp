#include "model/layer/attention/latent_index.h"

#include <algorithm>
#include <cmath>

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

constexpr int kIndexRows = 6, kIndexInputs = 8, kIndexHeads = 3, kIndexDim = 16, kIndexRope = 4;
constexpr float kIndexFrequencies[2] = {0.7f, 0.2f};

using DoubleRow = std::vector<double>;

class LatentIndexTest : public test::PartTest {
 protected:
  static LatentSpec spec_of(bool paired) {
    LatentSpec spec{.q_rank = 6, .rope_dim = kIndexRope, .inputs = kIndexInputs};
    spec.index = {kIndexHeads, kIndexDim, 3, paired};
    return spec;
  }
  void fill() {
    tensors_.clear();
    add("indexer.wk.weight", {kIndexDim, kIndexInputs});
    add("indexer.weights_proj.weight", {kIndexHeads, kIndexInputs});
    add("indexer.wq_b.weight", {kIndexHeads * kIndexDim, 6});
    add("indexer.k_norm.weight", {kIndexDim});
    add("indexer.k_norm.bias", {kIndexDim});
  }
  const test::RigTensor& tensor(const char* name) {
    return tensors_[std::string("indexer.") + name];
  }
  static void turn(double* front, int position, bool paired) {
    for (size_t i = 0; i < 2; ++i) {
      double& a = front[paired ? 2 * i : i];
      double& b = front[paired ? 2 * i + 1 : i + 2];
      const double angle = position * double(kIndexFrequencies[i]), x = a, y = b;
      a = x * std::cos(angle) - y * std::sin(angle);
      b = y * std::cos(angle) + x * std::sin(angle);
    }
  }
  DoubleRow key_of(const DoubleRow& x, int position, bool paired) {
    DoubleRow key = tensor("wk.weight").times(x);
    double mean = 0, squares = 0;
    for (const double each : key) mean += each / kIndexDim;
    for (const double each : key) squares += (each - mean) * (each - mean) / kIndexDim;
    for (size_t i = 0; i < key.size(); ++i) {
      key[i] = (key[i] - mean) / std::sqrt(squares + 1e-6) * tensor("k_norm.weight").values[i] +
               tensor("k_norm.bias").values[i];
    }
    turn(key.data(), position, paired);
    return key;
  }
  double score(const DoubleRow& x, const DoubleRow& q_low, int position, const DoubleRow& key,
               bool paired) {
    DoubleRow queries = tensor("wq_b.weight").times(q_low);
    const DoubleRow weights = tensor("weights_proj.weight").times(x);
    double sum = 0;
    for (size_t h = 0; h < kIndexHeads; ++h) {
      double* query = &queries[h * kIndexDim];
      turn(query, position, paired);
      double product = 0;
      for (size_t i = 0; i < kIndexDim; ++i) product += query[i] * key[i];
      sum += weights[h] * std::max(product, 0.0);
    }
    return sum;
  }
};

// Rows of a sequence, as written down: pairs that turn lie side by side or half of them apart.
TEST_F(LatentIndexTest, RowsChooseTheBestOfTheirScores) {
  std::vector<float> x(kIndexRows * kIndexInputs), q_low(kIndexRows * 6);
  foretoken::fill_random("x", std::ssize(x), 0.8f, DType::kF32, x.data());
  foretoken::fill_random("q", std::ssize(q_low), 0.8f, DType::kF32, q_low.data());
  for (const bool paired : {false, true}) {
    fill();
    const LatentSpec spec = spec_of(paired);
    const auto index = load_part<LatentIndex>(
        [&](PartLoader& loader, LatentIndex* out) { return out->load(loader, "indexer.", spec); });
    EXPECT_EQ(unused_, "");
    LatentIndex::Scratch scratch;
    scratch.fit(index.spec);
    ASSERT_TRUE(scratch.take(scratch_source(kIndexRows)).ok());
    const LayerRows rows = rows_of(kIndexRows, {0, 1, 2, 3, 4, 5});
    float* cache = allocate<float>(3 * 4 * kIndexDim);
    const LayerKv kv{
        .kv = {nullptr, nullptr, 1, 4, 16, DType::kF32},
        .kv_slot = to_device(std::vector<int32_t>{8, 9, 10, 11, 4, 5}),
        .block_tables = to_device(std::vector<int32_t>{2, 1}),
        .max_blocks = 2,
        .rope = {to_device(std::vector<float>(kIndexFrequencies, kIndexFrequencies + 2)),
                 kIndexRope, 1},
        .index_keys = cache};
    index.project(rows, to_device(x), scratch, DType::kF32);
    index.choose(rows, kv, to_device(q_low), scratch, DType::kF32);
    const auto entries = read(scratch.entries, kIndexRows * 3);
    const auto last = read(scratch.last, kIndexRows);
    const int slots[] = {8, 9, 10, 11, 4, 5};
    const auto row_of = [](const std::vector<float>& all, int row, int width) {
      return DoubleRow(all.begin() + row * width, all.begin() + (row + 1) * width);
    };
    for (int r = 0; r < kIndexRows; ++r) {
      std::vector<std::pair<double, int>> scored;
      for (int p = 0; p <= r; ++p) {
        const DoubleRow key = key_of(row_of(x, p, kIndexInputs), p, paired);
        const double value = score(row_of(x, r, kIndexInputs), row_of(q_low, r, 6), r, key, paired);
        scored.emplace_back(-value, p);
      }
      std::sort(scored.begin(), scored.end());
      std::vector<int> chosen;
      for (int i = 0; i < std::min(r + 1, 3); ++i) chosen.push_back(scored[size_t(i)].second);
      std::sort(chosen.begin(), chosen.end());
      ASSERT_EQ(last[size_t(r)] + 1, int(chosen.size()));
      for (size_t i = 0; i < chosen.size(); ++i) {
        EXPECT_EQ(entries[size_t(r) * 3 + i], slots[chosen[i]]) << paired << " row " << r;
      }
    }
    AttentionArgs attention{};
    index.restrict_to_chosen(scratch, &attention);
    EXPECT_EQ(attention.block_tables, scratch.entries);
    EXPECT_EQ(attention.kv.block_size, 1);
  }
}

TEST_F(LatentIndexTest, OneThatIsSharedHasNoTensors) {
  tensors_.clear();
  add("other.weight", {2});
  LatentSpec spec = spec_of(false);
  spec.index.own = false;
  const auto index = load_part<LatentIndex>(
      [&](PartLoader& loader, LatentIndex* out) { return out->load(loader, "indexer.", spec); });
  EXPECT_EQ(index.key.outputs, 0);
  EXPECT_EQ(index.spec.top, 3);
}

}  // namespace
}  // namespace foretoken
