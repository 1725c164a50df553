#include "model/layer/attention/compressed.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

using DoubleRow = std::vector<double>;

constexpr int kLength = 11, kHidden = 8, kHeads = 4, kDim = 16, kRope = 4, kLow = 6;
constexpr int kEntryHeads = 3, kBlock = 4, kBlocks = 4;
constexpr float kTailFrequencies[2] = {0.7f, 0.2f};

// One sequence in slot 0, whose blocks lie in another order.
class CompressedTest : public test::PartTest, public testing::WithParamInterface<CompressedSpec> {
 protected:
  const CompressedSpec& spec() const { return GetParam(); }
  test::RigTensor& tensor(const std::string& name) { return tensors_["attn." + name]; }

  void SetUp() override {
    test::PartTest::SetUp();
    if (test_device() == nullptr) return;
    add("attn.wq_a.weight", {kLow, kHidden});
    add("attn.wkv.weight", {kDim, kHidden});
    add("attn.wq_b.weight", {kHeads * kDim, kLow});
    add("attn.q_norm.weight", {kLow});
    add("attn.kv_norm.weight", {kDim});
    add("attn.attn_sink", {kHeads});
    add("attn.wo_a.weight", {spec().groups * spec().o_rank, kHeads / spec().groups * kDim});
    add("attn.wo_b.weight", {kHidden, spec().groups * spec().o_rank});
    if (spec().ratio > 0) add_compressor("compressor.", spec().width(), kDim);
    if (spec().index.exists()) {
      add_compressor("indexer.compressor.", spec().index_width(), kDim);
      add("attn.indexer.weights_proj.weight", {kEntryHeads, kHidden});
      add("attn.indexer.wq_b.weight", {kEntryHeads * kDim, kLow});
    }
    x_.resize(size_t{kLength} * kHidden);
    foretoken::fill_random("x", std::ssize(x_), 0.8f, DType::kF32, x_.data());
    take({});
    const int each = spec().ratio > 0 ? (kBlock + spec().ratio - 1) / spec().ratio : 1;
    history_rows_ = spec().state().conv_width + 2;
    history_ = allocate<float>(size_t(history_rows_ * std::max(spec().compressed_size(), 1)));
    kv_ = allocate<float>(size_t{kBlocks} * kBlock * kDim);
    entries_ = allocate<float>(size_t(kBlocks * each * kDim));
    keys_ = allocate<float>(size_t(kBlocks * each * kDim));
    tables_ = to_device(std::vector<int32_t>{2, 3, 1});
    frequencies_ = to_device(std::vector<float>(kTailFrequencies, kTailFrequencies + 2));
  }
  // Loads a rank's part.
  void take(const Sharding& sharding) {
    part_ = load_part<Compressed>(
        [&](PartLoader& loader, Compressed* out) { return out->load(loader, "", spec()); }, {},
        sharding);
    EXPECT_EQ(unused_, "");
    scratch_ = {};
    scratch_.fit(part_.spec);
    ASSERT_TRUE(scratch_.take(scratch_source(kLength)).ok());
  }
  void add_compressor(const std::string& name, int width, int dim) {
    add("attn." + name + "wkv.weight", {width, kHidden});
    add("attn." + name + "wgate.weight", {width, kHidden});
    add("attn." + name + "ape", {spec().ratio, width});
    add("attn." + name + "norm.weight", {dim});
  }

  // What rows [begin, end) add, in one step.
  std::vector<float> run(int begin, int end) {
    const int count = end - begin;
    std::vector<int32_t> positions(static_cast<size_t>(count)), slots;
    std::iota(positions.begin(), positions.end(), begin);
    const int blocks[] = {2, 3, 1};
    for (const int32_t p : positions) slots.push_back(blocks[p / kBlock] * kBlock + p % kBlock);
    const LayerRows rows = rows_of(count, positions);
    const auto* slot = to_device(slots);
    const LayerKv kv{.kv = {kv_, kv_, 1, kBlock, kDim, DType::kF32},
                     .kv_slot = slot,
                     .block_tables = tables_,
                     .max_blocks = 3,
                     .rope = {frequencies_, kRope, 1},
                     .state = {.history = history_, .history_rows = history_rows_},
                     .index_keys = keys_,
                     .compressed = entries_,
                     .full_slot = slot,
                     .full_tables = tables_};
    const auto from = x_.begin() + ptrdiff_t{begin} * kHidden;
    part_.project(rows, to_device(std::vector<float>(from, from + ptrdiff_t{count} * kHidden)),
                  scratch_);
    part_.attend(rows, kv, scratch_);
    float* out = allocate<float>(size_t(count) * kHidden);
    part_.output(rows, scratch_, {out});
    return read(out, size_t(count) * kHidden);
  }

  DoubleRow x(int position) const {
    const auto from = x_.begin() + ptrdiff_t{position} * kHidden;
    return {from, from + kHidden};
  }
  static DoubleRow normed(DoubleRow row, const test::RigTensor* weights) {
    double squares = 0;
    for (const double value : row) squares += value * value / double(row.size());
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] /= std::sqrt(squares + 1e-5);
      if (weights != nullptr) row[i] *= double(weights->values[i]);
    }
    return row;
  }
  static DoubleRow turned(DoubleRow row, int position) {
    double* tail = row.data() + row.size() - kRope;
    for (size_t i = 0; i < 2; ++i) {
      const double angle = position * double(kTailFrequencies[i]), a = tail[2 * i],
                   b = tail[2 * i + 1];
      tail[2 * i] = a * std::cos(angle) - b * std::sin(angle);
      tail[2 * i + 1] = b * std::cos(angle) + a * std::sin(angle);
    }
    return row;
  }
  // Entry `window` of a compressor.
  DoubleRow entry(const std::string& name, int window) {
    const int ratio = spec().ratio, end = (window + 1) * ratio - 1;
    const int begin = std::max(0, end + 1 - (spec().overlaps ? 2 : 1) * ratio);
    DoubleRow sums(kDim), made(kDim);
    for (int p = begin; p <= end; ++p) {
      const DoubleRow values = tensor(name + "wkv.weight").times(x(p));
      const DoubleRow gates = tensor(name + "wgate.weight").times(x(p));
      const size_t first = spec().overlaps && p > end - ratio ? kDim : 0;
      for (size_t c = 0; c < kDim; ++c) {
        const double bias =
            double(tensor(name + "ape").values[size_t(p % ratio) * values.size() + first + c]);
        const double weight = std::exp(gates[first + c] + bias);
        sums[c] += weight;
        made[c] += weight * values[first + c];
      }
    }
    for (size_t c = 0; c < kDim; ++c) made[c] /= sums[c];
    return turned(normed(made, &tensor(name + "norm.weight")), window * ratio);
  }
  static double product(const DoubleRow& a, const DoubleRow& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  }
  static DoubleRow head_of(const DoubleRow& all, int head) {
    const auto from = all.begin() + ptrdiff_t{head} * kDim;
    return {from, from + kDim};
  }
  // The windows whose entries the row at a position reads.
  std::vector<int> chosen(int position, const DoubleRow& q_low) {
    const int count = spec().ratio > 0 ? (position + 1) / spec().ratio : 0;
    std::vector<int> windows(static_cast<size_t>(count));
    std::iota(windows.begin(), windows.end(), 0);
    if (!spec().index.exists() || count <= spec().index.top) return windows;
    const DoubleRow queries = tensor("indexer.wq_b.weight").times(q_low);
    const DoubleRow weights = tensor("indexer.weights_proj.weight").times(x(position));
    const auto score = [&](int window) {
      const DoubleRow key = entry("indexer.compressor.", window);
      double sum = 0;
      for (int h = 0; h < kEntryHeads; ++h) {
        const double met = product(turned(head_of(queries, h), position), key);
        sum += weights[size_t(h)] * std::max(met, 0.0);
      }
      return sum;
    };
    std::stable_sort(windows.begin(), windows.end(),
                     [&](int a, int b) { return score(a) > score(b); });
    windows.resize(size_t(spec().index.top));
    return windows;
  }
  DoubleRow expected(int position) {
    const DoubleRow q_low =
        normed(tensor("wq_a.weight").times(x(position)), &tensor("q_norm.weight"));
    const DoubleRow queries = tensor("wq_b.weight").times(q_low);
    std::vector<DoubleRow> seen;
    for (int p = std::max(0, position + 1 - spec().window); p <= position; ++p) {
      seen.push_back(
          turned(normed(tensor("wkv.weight").times(x(p)), &tensor("kv_norm.weight")), p));
    }
    for (const int window : chosen(position, q_low)) seen.push_back(entry("compressor.", window));
    DoubleRow all;
    for (int h = 0; h < kHeads; ++h) {
      const DoubleRow q = turned(normed(head_of(queries, h), nullptr), position);
      double sum = std::exp(double(tensor("attn_sink").values[size_t(h)]));
      DoubleRow out(kDim);
      for (const DoubleRow& each : seen) {
        const double weight = std::exp(double(spec().scale) * product(q, each));
        sum += weight;
        for (size_t c = 0; c < kDim; ++c) out[c] += weight * each[c];
      }
      for (double& value : out) value /= sum;
      out = turned(out, -position);
      all.insert(all.end(), out.begin(), out.end());
    }
    return projected(all);
  }
  DoubleRow projected(const DoubleRow& heads) {
    const size_t columns = heads.size() / size_t(spec().groups);
    const auto rows = static_cast<size_t>(spec().o_rank);
    DoubleRow low;
    for (size_t i = 0; i < rows * size_t(spec().groups); ++i) {
      double sum = 0;
      for (size_t c = 0; c < columns; ++c) {
        sum +=
            double(tensor("wo_a.weight").values[i * columns + c]) * heads[i / rows * columns + c];
      }
      low.push_back(sum);
    }
    return tensor("wo_b.weight").times(low);
  }

  std::vector<float> x_;
  Compressed part_;
  Compressed::Scratch scratch_;
  int32_t history_rows_ = 0;
  float* history_ = nullptr;
  float* kv_ = nullptr;
  float* entries_ = nullptr;
  float* keys_ = nullptr;
  const int32_t* tables_ = nullptr;
  const float* frequencies_ = nullptr;
};

TEST_P(CompressedTest, RowsReadTheirWindowAndWhatIsCompressedBehindIt) {
  const auto got = run(0, kLength);
  for (int p = 0; p < kLength; ++p) {
    const DoubleRow want = expected(p);
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[size_t(p) * kHidden + i], want[i], 2e-5) << "position " << p;
    }
  }
}

TEST_P(CompressedTest, StepsOfAnyLengthGiveTheSameBits) {
  const auto whole = run(0, kLength);
  for (const int each : {1, 2, 3, 7}) {
    std::vector<float> pieces;
    for (int p = 0; p < kLength; p += each) {
      const auto piece = run(p, std::min(p + each, kLength));
      pieces.insert(pieces.end(), piece.begin(), piece.end());
    }
    EXPECT_EQ(pieces, whole) << each;
  }
}

TEST_P(CompressedTest, RanksAddUpToTheWhole) {
  const auto whole = run(0, kLength);
  std::vector<float> sum(whole.size());
  for (int rank = 0; rank < 2; ++rank) {
    take({.rank = rank, .size = 2});
    EXPECT_EQ(part_.spec.num_heads, kHeads / 2);
    EXPECT_EQ(part_.spec.groups, 1);
    const auto part = run(0, kLength);
    EXPECT_GT(std::abs(part[0] - whole[0]), 1e-4f) << "the other rank adds something";
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }
  for (size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(sum[i], whole[i], 2e-5) << i;
}

CompressedSpec tiny_spec(int ratio, bool overlaps) {
  CompressedSpec spec{.num_heads = kHeads,
                      .head_dim = kDim,
                      .rope_dim = kRope,
                      .inputs = kHidden,
                      .q_rank = kLow,
                      .groups = 2,
                      .o_rank = 16,
                      .window = 3,
                      .scale = 0.3f,
                      .ratio = ratio,
                      .overlaps = overlaps};
  if (overlaps) spec.index = {kEntryHeads, kDim, 2};
  return spec;
}

INSTANTIATE_TEST_SUITE_P(All, CompressedTest,
                         testing::Values(tiny_spec(0, false), tiny_spec(2, true),
                                         tiny_spec(4, false)),
                         [](const auto& test) { return "Of" + std::to_string(test.param.ratio); });

TEST(CompressedState, KeepsTheInputsThatEntriesAreMadeOf) {
  EXPECT_FALSE(tiny_spec(0, false).state().exists());
  const StateSpec chooses = tiny_spec(2, true).state();
  EXPECT_EQ(chooses.conv_channels, 2 * (2 * kDim + 2 * kDim));
  EXPECT_EQ(chooses.conv_width, 4);
  EXPECT_EQ(tiny_spec(4, false).state().conv_channels, 2 * kDim);
}

}  // namespace
}  // namespace foretoken
