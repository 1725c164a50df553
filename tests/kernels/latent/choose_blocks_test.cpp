#include "kernels/latent/choose_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/attention/attention.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr int kBlockHeads = 2, kBlockDim = 32, kPageSize = 4, kChoice = 8, kChosen = 3;
constexpr int kTableBlocks = 40, kCacheBlocks = 3 * kTableBlocks + 1, kSequences = 3;
constexpr int kGroup = 4, kHeadDim = 64;  // of attention

// Rows of three sequences whose KV blocks lie in any order.
class ChooseBlocksTest : public RowOpTest, public testing::WithParamInterface<DType> {
 protected:
  struct Rows {
    std::vector<int32_t> positions;
    std::vector<int32_t> slots;
    std::vector<float> q;  // [rows, kBlockHeads, kBlockDim]

    int count() const { return static_cast<int>(positions.size()); }
    Rows from(int row) const {
      const auto width = ptrdiff_t{kBlockHeads} * kBlockDim, at = row * width;
      return {
          {positions[size_t(row)]}, {slots[size_t(row)]}, {q.begin() + at, q.begin() + at + width}};
    }
  };
  // What the op leaves, in device memory too.
  struct Chosen {
    int page = 0, width = 0, first = 0, nearest = 1;
    StepCounts counts{};
    std::vector<int32_t> pages, last, rows, begins;
    const StepCounts* counts_memory = nullptr;
    int32_t *pages_memory = nullptr, *last_memory = nullptr, *rows_memory = nullptr;

    std::vector<int32_t> of(int row, int head) const {
      const auto at = size_t(row * kBlockHeads + head);
      const auto begin = pages.begin() + ptrdiff_t(at) * width;
      return {begin, begin + last[at] / page + 1};
    }
  };

  void SetUp() override {
    RowOpTest::SetUp();
    if (test_device() == nullptr) return;
    for (int i = 0; i < kSequences * kTableBlocks; ++i) {
      tables_.push_back(1 + i * 7 % (kCacheBlocks - 1));
    }
    keys_ = typed_data(random_floats(size_t{kCacheBlocks} * kPageSize * kBlockDim, 1), GetParam());
  }

  static Rows rows_of(std::vector<int32_t> positions, std::vector<int32_t> slots) {
    const size_t count = positions.size();
    return {std::move(positions), std::move(slots),
            random_floats(count * kBlockHeads * kBlockDim, 2)};
  }

  Chosen choose(const Rows& rows, int kv_begin = 0, int first = 0, int nearest = 1) {
    Chosen out;
    out.page = chosen_page_size(kChoice, kPageSize, kv_begin);
    out.first = first;
    out.nearest = nearest;
    out.width = kChosen * kChoice / out.page;
    const auto all = size_t(rows.count()) * kBlockHeads;
    auto* counts_out = to_device(std::vector<StepCounts>(1));
    out.pages_memory = to_device(std::vector<int32_t>(all * size_t(out.width), -1));
    out.last_memory = to_device(std::vector<int32_t>(all, -1));
    out.rows_memory = to_device(std::vector<int32_t>(all, -1));
    out.counts_memory = counts_out;
    auto* begins = to_device(std::vector<int32_t>(all * size_t(out.width), -1));
    choose_blocks(queue(), {.counts = counts(rows.count()),
                            .q = upload_typed(typed_data(rows.q, GetParam())),
                            .keys = upload_typed(keys_),
                            .positions = to_device(rows.positions),
                            .row_slot = to_device(rows.slots),
                            .block_tables = to_device(tables_),
                            .rows_of_heads = counts_out,
                            .pages = out.pages_memory,
                            .last = out.last_memory,
                            .rows = out.rows_memory,
                            .workspace = allocate<float>(size_t(kMaxScores)),
                            .max_blocks = kTableBlocks,
                            .block_size = kPageSize,
                            .kv_begin = kv_begin,
                            .max_rows = rows.count(),
                            .num_heads = kBlockHeads,
                            .head_dim = kBlockDim,
                            .choice = kChoice,
                            .page = out.page,
                            .top = kChosen,
                            .first = first,
                            .nearest = nearest,
                            .dtype = GetParam(),
                            .begins = begins});
    out.begins = read(begins, all * size_t(out.width));
    out.counts = read(counts_out, 1).front();
    out.pages = read(out.pages_memory, all * size_t(out.width));
    out.last = read(out.last_memory, all);
    out.rows = read(out.rows_memory, all);
    return out;
  }

  int32_t block_of(int slot, int position) const {
    return tables_[size_t(slot * kTableBlocks + position / kPageSize)];
  }
  int32_t page_at(const Chosen& chosen, int slot, int head, int position) const {
    return (block_of(slot, position) * kBlockHeads + head) * (kPageSize / chosen.page) +
           position % kPageSize / chosen.page;
  }
  double product(const Rows& rows, int row, int head, int position) const {
    const TypedData q = typed_data(rows.q, GetParam());
    const int entry =
        block_of(rows.slots[size_t(row)], position) * kPageSize + position % kPageSize;
    double sum = 0;
    for (int d = 0; d < kBlockDim; ++d) {
      sum += double(q.values[size_t((row * kBlockHeads + head) * kBlockDim + d)]) *
             keys_.values[size_t(entry * kBlockDim + d)];
    }
    return sum;
  }
  double score(const Rows& rows, int row, int head, int begin) const {
    double best = -std::numeric_limits<double>::infinity();
    const int end = std::min(begin + kChoice, rows.positions[size_t(row)] + 1);
    for (int p = begin; p < end; ++p) best = std::max(best, product(rows, row, head, p));
    return best;
  }

  // Whether the row's pages are those of `kChosen` blocks in order, those that must be among them
  // and the best of the others.
  void expect_best(const Rows& rows, const Chosen& chosen, int row, int head, int kv_begin) {
    const int position = rows.positions[size_t(row)], slot = rows.slots[size_t(row)];
    const int begin = std::min(kv_begin, position);
    const int count = (position - begin) / kChoice + 1;
    const std::vector<int32_t> pages = chosen.of(row, head);
    size_t next = 0;
    int num_chosen = 0, seen = 0;
    double worst = std::numeric_limits<double>::infinity(), best_left = -worst;
    for (int block = 0; block < count; ++block) {
      const int from = begin + block * kChoice, end = std::min(from + kChoice, position + 1);
      const bool is_chosen =
          next < pages.size() && pages[next] == page_at(chosen, slot, head, from);
      const bool must = block < chosen.first || block >= count - chosen.nearest;
      EXPECT_TRUE(is_chosen || !must) << row << " block " << block;
      const double own = score(rows, row, head, from);
      if (!is_chosen) best_left = std::max(best_left, own);
      if (is_chosen && !must) worst = std::min(worst, own);
      if (!is_chosen) continue;
      ++num_chosen;
      seen += end - from;
      for (int p = from; p < end; p += chosen.page) {
        ASSERT_LT(next, pages.size());
        EXPECT_EQ(chosen.begins[size_t(row * kBlockHeads + head) * size_t(chosen.width) + next],
                  p - p % chosen.page);
        EXPECT_EQ(pages[next++], page_at(chosen, slot, head, p)) << row;
      }
    }
    EXPECT_EQ(next, pages.size()) << row;
    EXPECT_EQ(num_chosen, std::min(count, kChosen)) << row;
    EXPECT_EQ(chosen.last[size_t(row * kBlockHeads + head)], seen - 1) << row;
    EXPECT_GE(worst, best_left - 1e-4) << row << " head " << head;
  }

  std::vector<int32_t> tables_;
  TypedData keys_;
};

TEST_P(ChooseBlocksTest, TheBestAndThoseThatMustBeInOrder) {
  const Rows rows = rows_of({0, 7, 8, 23, 24, 70, 159, 71, 72, 1}, {0, 0, 0, 0, 0, 1, 2, 1, 1, 2});
  for (const auto& [kv_begin, first, nearest] :
       {std::tuple(0, 0, 1), std::tuple(2, 0, 1), std::tuple(1, 0, 2), std::tuple(0, 1, 1),
        std::tuple(0, 2, 1)}) {
    const Chosen chosen = choose(rows, kv_begin, first, nearest);
    EXPECT_EQ(chosen.counts.num_rows, rows.count() * kBlockHeads);
    for (int r = 0; r < rows.count(); ++r) {
      if (rows.positions[size_t(r)] < kv_begin) continue;
      for (int h = 0; h < kBlockHeads; ++h) {
        EXPECT_EQ(chosen.rows[size_t(r * kBlockHeads + h)], r * kBlockHeads + h);
        expect_best(rows, chosen, r, h, kv_begin);
      }
    }
  }
}

TEST_P(ChooseBlocksTest, EqualScoresGoToEarlierBlocks) {
  Rows rows = rows_of({100}, {1});
  std::fill(rows.q.begin(), rows.q.end(), 0.0f);
  const Chosen chosen = choose(rows);
  std::vector<int32_t> wanted;
  for (const int block : {0, 1, 100 / kChoice}) {
    for (int p = block * kChoice; p < (block + 1) * kChoice && p <= 100; p += kPageSize) {
      wanted.push_back(page_at(chosen, 1, 0, p));
    }
  }
  EXPECT_EQ(chosen.of(0, 0), wanted);
}

TEST_P(ChooseBlocksTest, RowsDoNotDependOnOthers) {
  const Rows rows = rows_of({20, 21, 30, 100, 150, 23}, {0, 0, 0, 1, 2, 0});
  const Chosen all = choose(rows);
  for (int r = 0; r < rows.count(); ++r) {
    const Chosen own = choose(rows.from(r));
    for (int h = 0; h < kBlockHeads; ++h) EXPECT_EQ(own.of(0, h), all.of(r, h)) << r;
  }
}

// Rows of attention for each KV head have the bits of rows with all heads where all is chosen, and
// elsewhere see the chosen positions alone.
TEST_P(ChooseBlocksTest, AttentionSeesWhatIsChosen) {
  const Rows rows = rows_of({3, 4, 22, 23, 2, 90, 159}, {0, 0, 0, 0, 1, 1, 2});
  const Chosen chosen = choose(rows);
  const auto count = size_t(rows.count());
  const size_t entries = size_t{kCacheBlocks} * kBlockHeads * kPageSize;
  const TypedData k = typed_data(random_floats(entries * kHeadDim, 5), GetParam());
  const TypedData v = typed_data(random_floats(entries * kHeadDim, 6), GetParam());
  constexpr int kHeads = kBlockHeads * kGroup;
  const TypedData q = typed_data(random_floats(count * kHeads * kHeadDim, 7), GetParam());
  const size_t width = size_t{kHeads} * kHeadDim;
  AttentionArgs dense{};
  dense.counts = counts(rows.count());
  dense.q = upload_typed(q);
  dense.positions = to_device(rows.positions);
  dense.row_slot = to_device(rows.slots);
  dense.block_tables = to_device(tables_);
  dense.kv = {upload_typed(k), upload_typed(v), kBlockHeads, kPageSize, kHeadDim, GetParam()};
  dense.max_blocks = kTableBlocks;
  dense.max_rows = rows.count();
  dense.num_heads = kHeads;
  dense.scale = 0.2f;
  dense.family = AttentionFamily::kPortable;
  AttentionArgs sparse = dense;
  sparse.counts = chosen.counts_memory;
  sparse.positions = chosen.last_memory;
  sparse.row_slot = chosen.rows_memory;
  sparse.block_tables = chosen.pages_memory;
  sparse.kv.num_kv_heads = 1;
  sparse.kv.block_size = chosen.page;
  sparse.max_blocks = chosen.width;
  sparse.max_rows = rows.count() * kBlockHeads;
  sparse.num_heads = kGroup;
  sparse.runs = RunLengths::kShort;
  const auto run = [&](AttentionArgs args) {
    args.out = marked(count * width * dtype_size(GetParam()));
    attention(queue(), args);
    return read_typed(args.out, count * width, GetParam());
  };
  const std::vector<float> of_all = run(dense), of_chosen = run(sparse);
  for (int r = 0; r < rows.count(); ++r) {
    const bool sees_all = rows.positions[size_t(r)] < kChosen * kChoice;
    const auto part = [&](const std::vector<float>& out) {
      return std::vector<float>(out.begin() + ptrdiff_t(size_t(r) * width),
                                out.begin() + ptrdiff_t(size_t(r + 1) * width));
    };
    if (sees_all) {
      EXPECT_EQ(part(of_chosen), part(of_all)) << r;
      continue;
    }
    EXPECT_NE(part(of_chosen), part(of_all)) << r;
    for (int h = 0; h < kHeads; ++h) {
      const std::vector<int32_t> pages = chosen.of(r, h / kGroup);
      const float* query = &q.values[(size_t(r) * kHeads + size_t(h)) * kHeadDim];
      double weights = 0;
      std::vector<double> sums(kHeadDim);
      for (int i = 0; i <= chosen.last[size_t(r * kBlockHeads + h / kGroup)]; ++i) {
        const size_t at =
            size_t(pages[size_t(i / chosen.page)] * chosen.page + i % chosen.page) * kHeadDim;
        double dot = 0;
        for (size_t d = 0; d < kHeadDim; ++d) dot += double(query[d]) * k.values[at + d];
        const double weight = std::exp(dot * double(0.2f));
        weights += weight;
        for (size_t d = 0; d < kHeadDim; ++d) sums[d] += weight * v.values[at + d];
      }
      for (size_t d = 0; d < kHeadDim; ++d) {
        EXPECT_NEAR(of_chosen[size_t(r) * width + size_t(h) * kHeadDim + d], sums[d] / weights,
                    GetParam() == DType::kF32 ? 1e-4 : 2e-2)
            << r;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ChooseBlocksTest, testing::Values(DType::kF32, DType::kBF16));

}  // namespace
}  // namespace foretoken
