#include "kernels/latent/choose_entries.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/attention/attention.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr int kIndexHeads = 3, kEntriesBlockSize = 4, kTop = 9;
constexpr int kMaxBlocks = 40, kNumBlocks = 3 * kMaxBlocks + 1, kSlots = 3;

struct IndexCase {
  DType dtype;
  int dim;  // of a head
};

// Rows of three sequences whose blocks lie in any order.
class ChooseEntriesTest : public RowOpTest, public testing::WithParamInterface<IndexCase> {
 protected:
  struct Rows {
    std::vector<int32_t> positions;
    std::vector<int32_t> slots;
    std::vector<float> q;        // [rows, kIndexHeads, dim()]
    std::vector<float> weights;  // [rows, kIndexHeads]

    int count() const { return static_cast<int>(positions.size()); }
    Rows from(int row, int rows) const {
      const auto part = [&](const auto& all, ptrdiff_t width) {
        return std::decay_t<decltype(all)>(all.begin() + row * width,
                                           all.begin() + (row + rows) * width);
      };
      return {part(positions, 1), part(slots, 1), part(q, ptrdiff_t{kIndexHeads} * dim()),
              part(weights, kIndexHeads)};
    }
  };
  struct Chosen {
    int top;
    std::vector<int32_t> entries;  // [rows, top]
    std::vector<int32_t> last;
    std::vector<int32_t> rows;

    std::vector<int32_t> of(int row) const {
      const auto first = entries.begin() + ptrdiff_t{row} * top;
      return {first, first + last[size_t(row)] + 1};
    }
  };

  static int dim() { return GetParam().dim; }

  void SetUp() override {
    RowOpTest::SetUp();
    if (test_device() == nullptr) return;
    tables_.resize(kSlots * kMaxBlocks);
    for (size_t i = 0; i < tables_.size(); ++i) {
      tables_[i] = static_cast<int32_t>(1 + i * 7 % (kNumBlocks - 1));
    }
    keys_ = typed_data(random_floats(size_t(kNumBlocks * kEntriesBlockSize * dim()), 1),
                       GetParam().dtype);
  }

  static Rows rows_of(std::vector<int32_t> positions, std::vector<int32_t> slots) {
    const size_t count = positions.size();
    return {std::move(positions), std::move(slots),
            random_floats(count * size_t(kIndexHeads * dim()), 2),
            random_floats(count * kIndexHeads, 3)};
  }

  Chosen choose(const Rows& rows, int kv_begin = 0, int context_size = 1, int context_rank = 0,
                int positions_each = 1, bool spreads = false) {
    const auto count = static_cast<size_t>(rows.count());
    const TypedData q = typed_data(rows.q, GetParam().dtype);
    const int listed = listed_entries(top_, positions_each, spreads);
    const auto width = static_cast<size_t>(listed);
    auto* entries = to_device(std::vector<int32_t>(count * width, -1));
    auto* last = to_device(std::vector<int32_t>(count, -1));
    auto* numbers = to_device(std::vector<int32_t>(count, -1));
    choose_entries(queue(), {.counts = counts(rows.count()),
                             .q = upload_typed(q),
                             .weights = to_device(rows.weights),
                             .keys = upload_typed(keys_),
                             .positions = to_device(rows.positions),
                             .row_slot = to_device(rows.slots),
                             .block_tables = to_device(tables_),
                             .entries = entries,
                             .last = last,
                             .rows = numbers,
                             .workspace = allocate<float>(size_t(kMaxScores)),
                             .max_blocks = max_blocks_,
                             .block_size = kEntriesBlockSize,
                             .kv_begin = kv_begin,
                             .max_rows = rows.count(),
                             .num_heads = kIndexHeads,
                             .head_dim = dim(),
                             .top = top_,
                             .dtype = GetParam().dtype,
                             .context_size = context_size,
                             .context_rank = context_rank,
                             .positions_each = positions_each,
                             .spreads = spreads ? 1 : 0});
    return {listed, read(entries, count * width), read(last, count), read(numbers, count)};
  }

  int32_t entry_at(int slot, int position) const {
    return tables_[size_t(slot * max_blocks_ + position / kEntriesBlockSize)] * kEntriesBlockSize +
           position % kEntriesBlockSize;
  }
  double score(const Rows& rows, int row, int32_t entry) const {
    const TypedData typed_q = typed_data(rows.q, GetParam().dtype);
    double score = 0;
    for (size_t h = 0; h < kIndexHeads; ++h) {
      const size_t at = (size_t(row) * kIndexHeads + h) * size_t(dim());
      double product = 0;
      for (size_t d = 0; d < size_t(dim()); ++d) {
        product += double(typed_q.values[at + d]) * keys_.values[size_t(entry * dim()) + d];
      }
      score += rows.weights[size_t(row) * kIndexHeads + h] * std::max(product, 0.0);
    }
    return score;
  }

  std::vector<int32_t> tables_;
  int max_blocks_ = kMaxBlocks, top_ = kTop;
  TypedData keys_;
};

TEST_P(ChooseEntriesTest, TheBestThatEachRowSeesInOrder) {
  const Rows rows = rows_of({3, 8, 9, 70, 159, 71, 72, 0}, {0, 0, 0, 1, 2, 1, 1, 2});
  for (const int kv_begin : {0, 2}) {
    const Chosen chosen = choose(rows, kv_begin);
    for (int r = 0; r < rows.count(); ++r) {
      const int position = rows.positions[size_t(r)], slot = rows.slots[size_t(r)];
      const int begin = std::min(kv_begin, position);
      const std::vector<int32_t> own = chosen.of(r);
      EXPECT_EQ(chosen.rows[size_t(r)], r);
      ASSERT_EQ(int(own.size()), std::min(kTop, position + 1 - begin)) << r;
      size_t next = 0;
      double worst = std::numeric_limits<double>::infinity(), best_left = -worst;
      for (int p = begin; p <= position; ++p) {
        const double value = score(rows, r, entry_at(slot, p));
        const bool is_chosen = next < own.size() && own[next] == entry_at(slot, p);
        next += is_chosen ? 1 : 0;
        worst = is_chosen ? std::min(worst, value) : worst;
        best_left = is_chosen ? best_left : std::max(best_left, value);
      }
      EXPECT_EQ(next, own.size()) << "in the order of positions, row " << r;
      EXPECT_GE(worst, best_left - 1e-4) << r;
    }
  }
}

// A key of four positions is there once the last of them is; the first rows see none.
TEST_P(ChooseEntriesTest, KeysOfSeveralPositionsAreThoseOfOneEach) {
  const Rows rows = rows_of({2, 3, 30, 47, 159, 51}, {0, 0, 1, 1, 2, 1});
  const Chosen chosen = choose(rows, 0, 1, 0, 4);
  EXPECT_EQ(chosen.last[0], -1);
  Rows of_keys = rows.from(1, rows.count() - 1);
  for (int32_t& position : of_keys.positions) position = (position + 1) / 4 - 1;
  const Chosen single = choose(of_keys);
  for (int r = 1; r < rows.count(); ++r) EXPECT_EQ(chosen.of(r), single.of(r - 1)) << r;
}

// All positions of the keys that are chosen, then those that have no whole key yet; ranks that
// share positions have theirs.
TEST_P(ChooseEntriesTest, KeysOfSeveralPositionsSpreadToAllOfThem) {
  const Rows rows = rows_of({2, 3, 30, 47, 159, 52}, {0, 0, 1, 1, 2, 1});
  const Chosen keys = choose(rows, 0, 1, 0, 4), chosen = choose(rows, 0, 1, 0, 4, true);
  for (int r = 0; r < rows.count(); ++r) {
    std::vector<int32_t> wanted;
    for (const int32_t key : keys.of(r)) {
      for (int j = 0; j < 4; ++j) wanted.push_back(4 * key + j);
    }
    const int seen = rows.positions[size_t(r)] + 1;
    for (int j = 0; j < seen % 4; ++j) {
      wanted.push_back(4 * entry_at(rows.slots[size_t(r)], seen / 4) + j);
    }
    EXPECT_EQ(chosen.of(r), wanted) << r;
    for (int rank = 0; rank < 2; ++rank) {
      const Chosen part = choose(rows, 0, 2, rank, 4, true);
      std::vector<int32_t> held;
      for (const int32_t entry : wanted) {
        if (entry % 2 == rank) held.push_back(entry / 2);
      }
      const auto from = part.entries.begin() + ptrdiff_t{r} * part.top;
      EXPECT_EQ(std::vector<int32_t>(from, from + ptrdiff_t(held.size())), held) << r;
      EXPECT_EQ(part.last[size_t(r)], (int32_t(held.size()) - 1) * 2 + rank) << r;
    }
  }
}

TEST_P(ChooseEntriesTest, EqualScoresGoToLowerPositions) {
  Rows rows = rows_of({40, 155}, {0, 1});
  std::fill(rows.weights.begin(), rows.weights.end(), 0.0f);
  const Chosen chosen = choose(rows);
  for (int r = 0; r < 2; ++r) {
    std::vector<int32_t> first;
    for (int p = 0; p < kTop; ++p) first.push_back(entry_at(r, p));
    EXPECT_EQ(chosen.of(r), first);
  }
}

// Blocks stand many times in a table, so that many scores are equal: the earlier ones are chosen,
// and no score that is left is better than one that is.
TEST_P(ChooseEntriesTest, LongContextsWithEqualScores) {
  constexpr int kLong = 2100;
  max_blocks_ = kLong;
  top_ = 700;
  tables_.resize(size_t{kSlots} * kLong);
  for (size_t i = 0; i < tables_.size(); ++i) {
    tables_[i] = static_cast<int32_t>(1 + (i * i + i / 9) % (kNumBlocks - 1));
  }
  const Rows rows = rows_of({8399, 699, 700, 4097, 1030, 8000}, {0, 1, 1, 2, 2, 1});
  const Chosen chosen = choose(rows);
  for (int r = 0; r < rows.count(); ++r) {
    const int position = rows.positions[size_t(r)], slot = rows.slots[size_t(r)];
    const std::vector<int32_t> own = chosen.of(r);
    ASSERT_EQ(int(own.size()), std::min(top_, position + 1)) << r;
    std::vector<double> scores(size_t{kNumBlocks} * kEntriesBlockSize);
    for (size_t e = 0; e < scores.size(); ++e) scores[e] = score(rows, r, int32_t(e));
    std::vector<bool> is_left(scores.size());
    double worst = std::numeric_limits<double>::infinity(), best_left = -worst;
    size_t next = 0;
    for (int p = 0; p <= position; ++p) {
      const auto entry = size_t(entry_at(slot, p));
      // The choice is a subsequence; where an entry was left, so are its later positions.
      if (next < own.size() && size_t(own[next]) == entry && !is_left[entry]) {
        ++next;
        worst = std::min(worst, scores[entry]);
      } else {
        is_left[entry] = true;
        best_left = std::max(best_left, scores[entry]);
      }
    }
    EXPECT_EQ(next, own.size()) << r;
    EXPECT_GE(worst, best_left - 1e-4) << r;
  }
  for (int rank = 0; rank < 2; ++rank) {
    const Chosen part = choose(rows, 0, 2, rank);
    for (int r = 0; r < rows.count(); ++r) {
      std::vector<int32_t> held;
      for (const int32_t entry : chosen.of(r)) {
        if (entry % 2 == rank) held.push_back(entry / 2);
      }
      const auto from = part.entries.begin() + ptrdiff_t{r} * top_;
      EXPECT_EQ(std::vector<int32_t>(from, from + ptrdiff_t(held.size())), held) << r;
      EXPECT_EQ(part.last[size_t(r)], (int32_t(held.size()) - 1) * 2 + rank);
    }
  }
}

TEST_P(ChooseEntriesTest, RowsDoNotDependOnOthers) {
  const Rows rows = rows_of({20, 21, 22, 100, 150, 23}, {0, 0, 0, 1, 2, 0});
  const Chosen all = choose(rows);
  for (int r = 0; r < rows.count(); ++r) {
    EXPECT_EQ(choose(rows.from(r, 1)).of(0), all.of(r)) << r;
  }
}

// Ranks that share positions make one choice, of which each has the entries that it holds; the
// position says how many of its own positions a row sees.
TEST_P(ChooseEntriesTest, RanksHaveTheirPartsOfOneChoice) {
  const Rows rows = rows_of({0, 3, 9, 70, 159, 71, 1}, {0, 0, 0, 1, 2, 1, 2});
  const Chosen whole = choose(rows);
  for (const int size : {2, 4}) {
    std::vector<std::vector<int32_t>> joined(size_t(rows.count()));
    for (int rank = 0; rank < size; ++rank) {
      const Chosen own = choose(rows, 0, size, rank);
      for (int r = 0; r < rows.count(); ++r) {
        KvLayer kv{};
        kv.context_size = size;
        kv.context_rank = rank;
        const int count = entries_before(kv, own.last[size_t(r)] + 1);
        ASSERT_GE(count, 0);
        ASSERT_EQ(entries_before(kv, std::min(0, own.last[size_t(r)])), 0);
        for (int i = 0; i < count; ++i) {
          joined[size_t(r)].push_back(own.entries[size_t(r * kTop + i)] * size + rank);
        }
      }
    }
    for (int r = 0; r < rows.count(); ++r) {
      std::vector<int32_t> wanted = whole.of(r), got = joined[size_t(r)];
      std::sort(wanted.begin(), wanted.end());
      std::sort(got.begin(), got.end());
      EXPECT_EQ(got, wanted) << size << " ranks, row " << r;
    }
  }
}

// Rows that choose all that they see attend as without a choice, bit for bit.
TEST_P(ChooseEntriesTest, AttentionOverAllThatIsSeenHasTheBitsOfDenseAttention) {
  constexpr int kQueryHeads = 4, kEntry = 48, kValue = 32;
  const Rows rows = rows_of({3, 4, 5, 6, 7, 8, 2}, {0, 0, 0, 0, 0, 0, 1});
  const Chosen chosen = choose(rows);
  const auto count = static_cast<size_t>(rows.count());
  void* cache = upload_typed(typed_data(
      random_floats(size_t{kNumBlocks} * kEntriesBlockSize * kEntry, 5), GetParam().dtype));
  KvLayer kv{cache, cache, 1, kEntriesBlockSize, kEntry, GetParam().dtype};
  kv.value_dim = kValue;
  const void* q =
      upload_typed(typed_data(random_floats(count * kQueryHeads * kEntry, 6), GetParam().dtype));
  const size_t bytes = count * kQueryHeads * kValue * dtype_size(GetParam().dtype);
  const auto attend = [&](const std::vector<int32_t>& positions, const std::vector<int32_t>& slots,
                          const std::vector<int32_t>& tables, int max_blocks, int block_size) {
    uint8_t* out = marked(bytes);
    AttentionArgs args{};
    args.counts = counts(rows.count());
    args.q = q;
    args.out = out;
    args.positions = to_device(positions);
    args.row_slot = to_device(slots);
    args.block_tables = to_device(tables);
    args.kv = kv;
    args.kv.block_size = block_size;
    args.max_blocks = max_blocks;
    args.max_rows = rows.count();
    args.num_heads = kQueryHeads;
    args.scale = 0.2f;
    args.family = AttentionFamily::kPortable;
    attention(queue(), args);
    return read(out, bytes);
  };
  EXPECT_EQ(attend(rows.positions, rows.slots, tables_, kMaxBlocks, kEntriesBlockSize),
            attend(chosen.last, chosen.rows, chosen.entries, kTop, 1));
}

INSTANTIATE_TEST_SUITE_P(All, ChooseEntriesTest,
                         testing::Values(IndexCase{DType::kF32, 32}, IndexCase{DType::kBF16, 32},
                                         IndexCase{DType::kBF16, 48}, IndexCase{DType::kBF16, 64},
                                         IndexCase{DType::kBF16, 128}));

}  // namespace
}  // namespace foretoken
