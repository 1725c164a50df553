#include "model/layer/attention/block_index.h"

#include <algorithm>
#include <cmath>

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

constexpr int kBlockRows = 8, kBlockInputs = 8, kBlockKvHeads = 2, kBlockIndexDim = 16;
constexpr float kBlockFrequencies[2] = {0.7f, 0.2f};

using DoubleRow = std::vector<double>;

class BlockIndexTest : public test::PartTest {
 protected:
  static GqaSpec spec() {
    GqaSpec spec{
        .num_heads = 4, .num_kv_heads = kBlockKvHeads, .head_dim = 16, .inputs = kBlockInputs};
    spec.index = {.num_heads = kBlockKvHeads, .head_dim = kBlockIndexDim, .block = 2, .top = 2};
    return spec;
  }
  // Under the names of published files, or those that transformers writes.
  void fill(const std::string& base) {
    base_ = base;
    tensors_.clear();
    add(base + "q_proj.weight", {kBlockKvHeads * kBlockIndexDim, kBlockInputs});
    add(base + "k_proj.weight", {kBlockIndexDim, kBlockInputs});
    add(base + "q_norm.weight", {kBlockIndexDim});
    add(base + "k_norm.weight", {kBlockIndexDim});
  }
  // Head `head` of what the matrix makes of x, normed by root mean squares and turned.
  DoubleRow head_of(const char* name, const char* norm, const DoubleRow& x, int head,
                    int position) {
    const DoubleRow all = tensors_[base_ + name].times(x);
    const auto begin = all.begin() + head * kBlockIndexDim;
    DoubleRow own(begin, begin + kBlockIndexDim);
    double squares = 0;
    for (const double each : own) squares += each * each / kBlockIndexDim;
    for (size_t i = 0; i < own.size(); ++i) {
      own[i] *= tensors_[base_ + norm].values[i] / std::sqrt(squares + rms_eps());
    }
    for (size_t i = 0; i < 2; ++i) {
      const double angle = position * double(kBlockFrequencies[i]), a = own[i], b = own[i + 2];
      own[i] = a * std::cos(angle) - b * std::sin(angle);
      own[i + 2] = b * std::cos(angle) + a * std::sin(angle);
    }
    return own;
  }
  double rms_eps() const { return double(config_.rms_norm_eps); }

  std::string base_;
};

// Rows of a sequence, as written down: the best of the blocks before a row's own, for each head.
TEST_F(BlockIndexTest, RowsChooseTheBestBlocks) {
  std::vector<float> x(kBlockRows * kBlockInputs);
  foretoken::fill_random("x", std::ssize(x), 0.8f, DType::kF32, x.data());
  for (const char* base : {"index_", "indexer."}) {
    fill(base);
    const auto index = load_part<BlockIndex>(
        [&](PartLoader& loader, BlockIndex* out) { return out->load(loader, "", spec()); });
    EXPECT_EQ(unused_, "");
    BlockIndex::Scratch scratch;
    scratch.fit(index.spec, 4, 16);
    ASSERT_TRUE(scratch.take(scratch_source(kBlockRows)).ok());
    const LayerRows rows = rows_of(kBlockRows, {0, 1, 2, 3, 4, 5, 6, 7});
    const LayerKv kv{
        .kv = {nullptr, nullptr, kBlockKvHeads, 4, 16, DType::kF32},
        .kv_slot = to_device(std::vector<int32_t>{8, 9, 10, 11, 4, 5, 6, 7}),
        .block_tables = to_device(std::vector<int32_t>{2, 1}),
        .max_blocks = 2,
        .rope = {to_device(std::vector<float>(kBlockFrequencies, kBlockFrequencies + 2)), 4, 1},
        .index_keys = allocate<float>(3 * 4 * kBlockIndexDim)};
    index.project(rows, to_device(x), scratch, DType::kF32);
    index.choose(rows, kv, scratch, DType::kF32);
    constexpr int kPages = 2;  // of two positions each
    const auto pages = read(scratch.pages, kBlockRows * kBlockKvHeads * 4);
    const auto row_of = [&](int row) {
      return DoubleRow(x.begin() + row * kBlockInputs, x.begin() + (row + 1) * kBlockInputs);
    };
    for (int r = 0; r < kBlockRows; ++r) {
      for (int h = 0; h < kBlockKvHeads; ++h) {
        const DoubleRow query = head_of("q_proj.weight", "q_norm.weight", row_of(r), h, r);
        int best = 0;
        double highest = -1e9;
        for (int p = 0; p < r / 2 * 2; ++p) {
          const DoubleRow key = head_of("k_proj.weight", "k_norm.weight", row_of(p), 0, p);
          double score = 0;
          for (size_t i = 0; i < key.size(); ++i) score += query[i] * key[i];
          if (score > highest) best = p / 2;
          highest = std::max(highest, score);
        }
        std::vector<int> blocks;
        if (r >= 2) blocks.push_back(best);
        blocks.push_back(r / 2);
        for (size_t i = 0; i < blocks.size(); ++i) {
          const int block = blocks[i] < 2 ? 2 : 1, place = blocks[i] % 2;
          const size_t at = size_t((r * kBlockKvHeads + h) * kPages) + i;
          EXPECT_EQ(pages[at], (block * kBlockKvHeads + h) * 2 + place) << base << r << h;
        }
      }
    }
  }
}

}  // namespace
}  // namespace foretoken
