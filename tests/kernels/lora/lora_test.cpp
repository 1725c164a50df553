#include "kernels/lora/lora.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "kernels/gemm/gated_act.h"
#include "kernels/gemm/gemm.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr int kAdapters = 5, kSlots = 40;

// What an adapter adds to one product, as the reference has it.
struct HostMatrix {
  int rank = 0;
  float scale = 0;
  std::vector<float> a;        // [rank, k]
  std::vector<float> b;        // [rank, n]
  std::vector<float> factors;  // [n], or none
};

// Two products of one x, and adapters of several ranks for them; the first has none for the second,
// the fourth multiplies what comes of both.
class LoraTest : public RowOpTest, public testing::WithParamInterface<std::tuple<int, DType, int>> {
 protected:
  void SetUp() override {
    RowOpTest::SetUp();
    if (IsSkipped()) return;
    std::tie(k_, dtype_, max_rank_) = GetParam();
    std::vector<LoraMatrix> table;
    for (int adapter = 0; adapter < kAdapters; ++adapter) {
      for (int part = 0; part < 2; ++part) {
        const int ranks[] = {max_rank_, 8, max_rank_ / 2};
        const int rank = adapter == 0 && part == 1 ? 0 : ranks[adapter % 3];
        table.push_back(make_matrix(adapter, part, rank));
      }
    }
    matrices_ = to_device(table);
  }

  LoraMatrix make_matrix(int adapter, int part, int rank) {
    HostMatrix host{rank, 0.5f + 0.25f * float(adapter), {}, {}, {}};
    const auto seed = static_cast<uint64_t>(10 * adapter + part);
    const int64_t stride = lora_stride(n_[part]);
    const TypedData a =
        typed_data(random_floats(size_t(rank) * k_, seed, 1 / std::sqrt(float(k_))), dtype_);
    std::vector<float> columns(size_t(rank) * stride);
    const auto values = random_floats(size_t(rank) * n_[part], seed + 5, 0.3f);
    for (int j = 0; j < rank; ++j) {
      std::copy_n(values.begin() + j * n_[part], n_[part], columns.begin() + j * stride);
    }
    const TypedData b = typed_data(columns, dtype_);
    host.a = a.values;
    host.b = b.values;
    if (adapter == 3) host.factors = random_floats(static_cast<size_t>(n_[part]), seed + 7);
    hosts_.push_back(host);
    return {upload_typed(a), upload_typed(b), host.scale, rank,
            host.factors.empty() ? nullptr : to_device(host.factors)};
  }

  // Row r has slot r of `slots`, whose adapters are those of `adapters`; 0: none.
  LoraRows group(const std::vector<int32_t>& adapters) {
    std::vector<SlotParams> params(kSlots + 1);
    std::vector<int32_t> slots(adapters.size());
    for (size_t r = 0; r < adapters.size(); ++r) {
      slots[r] = static_cast<int32_t>(r) % kSlots;
      params[static_cast<size_t>(slots[r])].adapter = adapters[r];
    }
    return group(slots, params);
  }
  LoraRows group(const std::vector<int32_t>& slots, const std::vector<SlotParams>& params) {
    const auto rows = static_cast<int32_t>(slots.size());
    max_rows_ = rows;
    LoraRows out{allocate<int32_t>(2), allocate<LoraTile>(max_lora_tiles(rows, kAdapters)),
                 allocate<int32_t>(rows), allocate<int32_t>(rows)};
    group_lora(queue(), {counts(rows), to_device(slots), to_device(params), out, rows, kAdapters});
    return out;
  }

  std::vector<float> run(const LoraRows& rows, const void* x, const std::vector<float>& before) {
    float* t = allocate<float>(size_t(max_rows_) * 2 * lora_splits(k_) * max_rank_);
    float* y = to_device(before);
    lora_shrink(queue(), shrink_args(rows, x, t));
    lora_expand(queue(), expand_args(rows, t, y));
    return read(y, before.size());
  }

  LoraShrinkArgs shrink_args(const LoraRows& rows, const void* x, float* t) const {
    return {rows, matrices_, x, t, 2, 2, max_rank_, k_, max_rows_, kAdapters, dtype_};
  }
  LoraExpandArgs expand_args(const LoraRows& rows, const float* t, float* y) const {
    return {rows,           matrices_,     t,         y,         nullptr, 2, 2, max_rank_,
            {n_[0], n_[1]}, n_[0] + n_[1], max_rows_, kAdapters, dtype_,  k_};
  }

  // In double, of one row.
  std::vector<double> reference(const float* x, int adapter, const float* before) const {
    std::vector<double> y(before, before + n_[0] + n_[1]);
    for (int part = 0; part < 2 && adapter > 0; ++part) {
      const HostMatrix& host = hosts_[static_cast<size_t>(2 * (adapter - 1) + part)];
      for (int j = 0; j < host.rank; ++j) {
        double t = 0;
        for (int i = 0; i < k_; ++i) t += double(host.a[size_t(j) * k_ + i]) * x[i];
        for (int c = 0; c < n_[part]; ++c) {
          y[size_t(part * n_[0] + c)] +=
              host.scale * t * host.b[size_t(j) * lora_stride(n_[part]) + c];
        }
      }
      for (size_t c = 0; c < host.factors.size(); ++c) {
        y[static_cast<size_t>(part * n_[0]) + c] *= host.factors[c];
      }
    }
    return y;
  }

  const int n_[2] = {70, 1036};
  int k_ = 0;
  DType dtype_ = DType::kF32;
  int max_rank_ = 0;
  int max_rows_ = 0;
  std::vector<HostMatrix> hosts_;
  const LoraMatrix* matrices_ = nullptr;
};

TEST_P(LoraTest, MatchesDoubleForRowsOfAllAdapters) {
  const std::vector<int32_t> adapters = {3, 0, 1, 1, 5, 0, 3, 2, 4, 3, 5, 5, 0};
  const TypedData x = typed_data(random_floats(adapters.size() * k_, 1), dtype_);
  const std::vector<float> before = random_floats(adapters.size() * (n_[0] + n_[1]), 2);
  const auto y = run(group(adapters), upload_typed(x), before);
  const size_t cols = static_cast<size_t>(n_[0] + n_[1]);
  for (size_t r = 0; r < adapters.size(); ++r) {
    const auto want = reference(&x.values[r * k_], adapters[r], &before[r * cols]);
    for (size_t c = 0; c < cols; ++c) {
      if (adapters[r] == 0) {
        ASSERT_EQ(y[r * cols + c], before[r * cols + c]) << "row " << r << " has no adapter";
      } else {
        ASSERT_NEAR(y[r * cols + c], want[c], 2e-5) << "row " << r << " column " << c;
      }
    }
  }
}

TEST_P(LoraTest, RowsAreBitEqualAloneAndBesideOthers) {
  const size_t cols = static_cast<size_t>(n_[0] + n_[1]);
  std::vector<int32_t> adapters(39);
  for (size_t r = 0; r < adapters.size(); ++r) adapters[r] = r < 21 ? 2 : static_cast<int>(r % 6);
  const TypedData x = typed_data(random_floats(adapters.size() * k_, 3), dtype_);
  const std::vector<float> before = random_floats(adapters.size() * cols, 4);
  const auto together = run(group(adapters), upload_typed(x), before);
  const size_t row_bytes = k_ * dtype_size(dtype_);
  for (const size_t r : {0, 7, 15, 16, 20, 25, 38}) {
    const std::vector<uint8_t> own(x.bytes.begin() + r * row_bytes,
                                   x.bytes.begin() + (r + 1) * row_bytes);
    const std::vector<float> own_before(before.begin() + r * cols, before.begin() + (r + 1) * cols);
    const auto alone = run(group({adapters[r]}), to_device(own), own_before);
    ASSERT_EQ(std::memcmp(alone.data(), &together[r * cols], cols * sizeof(float)), 0) << r;
  }
}

// As layers have them: the product lets the op of adapters run beside it.
TEST_P(LoraTest, ChangesTheProductThatItRunsBeside) {
  const int cols = n_[0] + n_[1];
  const TypedData w =
      typed_data(random_floats(size_t(cols) * k_, 30, 1 / std::sqrt(float(k_))), dtype_);
  const void* weight = pack(w.data(), cols, k_, dtype_);
  for (const int num_rows : {1, 5, 40, 100}) {
    std::vector<int32_t> adapters(static_cast<size_t>(num_rows));
    for (size_t r = 0; r < adapters.size(); ++r) adapters[r] = static_cast<int32_t>(r * 7 % 6);
    const void* x = upload_typed(typed_data(random_floats(size_t(num_rows) * k_, 31), dtype_));
    const LoraRows rows = group(adapters);
    float* y = allocate<float>(size_t(num_rows) * cols);
    GemmArgs product{counts(num_rows), x,    weight, y,      nullptr,    RowKind::kToken, 0,
                     num_rows,         cols, k_,     dtype_, DType::kF32};
    gemm(queue(), product);
    const auto want = run(rows, x, read(y, size_t(num_rows) * cols));
    float* t = allocate<float>(size_t(num_rows) * 2 * lora_splits(k_) * max_rank_);
    LoraShrinkArgs shrink = shrink_args(rows, x, t);
    shrink.beside_product = product.frees_next = 1;
    for (int again = 0; again < 5; ++again) {
      gemm(queue(), product);
      lora_shrink(queue(), shrink);
      lora_expand(queue(), expand_args(rows, t, y));
    }
    ASSERT_EQ(read(y, want.size()), want) << num_rows;
  }
}

// The spans of a step lie side by side, and its sequences have their adapters in no order.
TEST_P(LoraTest, GroupsRowsByTheAdapterOfTheirSlot) {
  std::vector<SlotParams> params(kSlots + 1);
  params[4].adapter = 2;
  params[7].adapter = 1;
  params[9].adapter = 2;
  std::vector<int32_t> slots;
  for (const auto& [slot, count] : {std::pair{4, 18}, std::pair{1, 3}, std::pair{7, 1},
                                    std::pair{9, 20}, std::pair{kSlots, 2}}) {
    slots.insert(slots.end(), static_cast<size_t>(count), slot);
  }
  const LoraRows grouped = group(slots, params);
  const auto num_tiles = read(grouped.num_tiles, 2);
  const auto tiles = read(grouped.tiles, static_cast<size_t>(num_tiles[1]));
  const auto rows = read(grouped.rows, slots.size());
  ASSERT_EQ(num_tiles[0], 4);
  ASSERT_EQ(num_tiles[1], 5);
  const std::vector<std::array<int32_t, 3>> want = {
      {0, 0, 1}, {1, 1, 16}, {1, 17, 16}, {1, 33, 6}, {-1, 39, 5}};
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ((std::array{tiles[i].adapter, tiles[i].begin, tiles[i].count}), want[i]) << i;
  }
  EXPECT_EQ(rows[0], 21);
  for (int i = 0; i < 38; ++i) {
    EXPECT_EQ(rows[static_cast<size_t>(i) + 1], i < 18 ? i : 22 + i - 18);
  }
  EXPECT_EQ(std::vector(rows.begin() + 39, rows.end()), (std::vector{18, 19, 20, 42, 43}));
}

// Logits rows have the adapter of the slot of their token row.
TEST_P(LoraTest, GroupsLogitsRowsByTheTokenRowsThatTheyAre) {
  const std::vector<int32_t> adapters = {0, 2, 2, 1, 0, 3, 1, 2}, index = {7, 5, 6, 0, 1, 3};
  constexpr int kOffset = 2, kLive = 3, kMaxRows = 5;
  std::vector<SlotParams> params(kSlots + 1);
  std::vector<int32_t> slots(adapters.size());
  for (size_t r = 0; r < adapters.size(); ++r) {
    slots[r] = static_cast<int32_t>(r);
    params[r].adapter = adapters[r];
  }
  StepCounts live{};
  live.num_rows = static_cast<int32_t>(adapters.size());
  live.num_logits_rows = kOffset + kLive;
  const LoraRows rows{allocate<int32_t>(2), allocate<LoraTile>(max_lora_tiles(kMaxRows, kAdapters)),
                      allocate<int32_t>(kMaxRows), allocate<int32_t>(kMaxRows)};
  group_lora(queue(), {.counts = to_device(std::vector{live}),
                       .row_slot = to_device(slots),
                       .params = to_device(params),
                       .rows = rows,
                       .max_rows = kMaxRows,
                       .max_adapters = kAdapters,
                       .row_index = to_device(index),
                       .row_offset = kOffset});
  // Rows 6, 0 and 1 of the tokens.
  EXPECT_EQ(read(rows.num_tiles, 2), (std::vector{2, 3}));
  EXPECT_EQ(read(rows.rows, kLive), (std::vector{0, 2, 1}));
  const auto tiles = read(rows.tiles, 3);
  EXPECT_EQ((std::array{tiles[0].adapter, tiles[1].adapter, tiles[2].adapter}),
            (std::array{0, 1, -1}));
}

TEST_P(LoraTest, RowsBeforeTheirAdapterBeginsHaveNone) {
  constexpr int kRows = 6;
  std::vector<SlotParams> params(kSlots + 1);
  params[0].adapter = 2;
  params[0].adapter_begin = 7;
  params[1].adapter = 1;
  const LoraRows rows{allocate<int32_t>(2), allocate<LoraTile>(max_lora_tiles(kRows, kAdapters)),
                      allocate<int32_t>(kRows), allocate<int32_t>(kRows)};
  group_lora(queue(), {.counts = counts(kRows),
                       .row_slot = to_device(std::vector<int32_t>{0, 0, 0, 0, 1, 1}),
                       .params = to_device(params),
                       .rows = rows,
                       .max_rows = kRows,
                       .max_adapters = kAdapters,
                       .positions = to_device(std::vector<int32_t>{5, 6, 7, 8, 0, 1})});
  EXPECT_EQ(read(rows.num_tiles, 2), (std::vector{2, 3}));
  EXPECT_EQ(read(rows.rows, kRows), (std::vector{4, 5, 2, 3, 0, 1}));
}

// An embedding's a has a row for each id.
TEST_P(LoraTest, LooksRowsUpByTheirIds) {
  constexpr int kIds = 9;
  const std::vector<int32_t> adapters = {2, 0, 1, 2, 1}, ids = {8, 3, 0, kIds, -1};
  std::vector<std::vector<float>> tables;
  std::vector<LoraMatrix> matrices;
  for (const int rank : {max_rank_, 8}) {
    const TypedData a =
        typed_data(random_floats(size_t(kIds) * rank, 40 + matrices.size(), 0.5f), dtype_);
    tables.push_back(a.values);
    matrices.push_back({upload_typed(a), nullptr, 0.75f, rank});
  }
  const LoraRows rows = group(adapters);
  float* t = to_device(std::vector<float>(adapters.size() * max_rank_, 7));
  lora_shrink(queue(), {.rows = rows,
                        .matrices = to_device(matrices),
                        .x = nullptr,
                        .t = t,
                        .adapter_stride = 1,
                        .num_parts = 1,
                        .max_rank = max_rank_,
                        .k = kIds,
                        .max_rows = static_cast<int32_t>(adapters.size()),
                        .max_adapters = 2,
                        .dtype = dtype_,
                        .token_ids = to_device(ids)});
  const auto order = read(rows.rows, adapters.size());
  const auto got = read(t, adapters.size() * max_rank_);
  for (size_t place = 0; place < 4; ++place) {
    const auto row = static_cast<size_t>(order[place]);
    const size_t which = static_cast<size_t>(adapters[row]) - 1;
    const int rank = which == 0 ? max_rank_ : 8;
    const int id = ids[row] >= 0 && ids[row] < kIds ? ids[row] : 0;
    for (int j = 0; j < max_rank_; ++j) {
      const float want = j < rank ? 0.75f * tables[which][size_t(id) * rank + j] : 7;
      ASSERT_EQ(got[place * max_rank_ + j], want) << "row " << row << " element " << j;
    }
  }
}

// Products of a weight of gates and ups that are left as they are, changed and then gated.
TEST_P(LoraTest, ReachesGatesAndUpsBeforeTheyAreMultiplied) {
  constexpr int kRows = 11, kSize = 203;
  const TypedData w =
      typed_data(random_floats(size_t(2) * kSize * k_, 5, 1 / std::sqrt(float(k_))), dtype_);
  const void* pairs = pack(w.data(), 2 * kSize, k_, dtype_, WeightOrder::kGateUp);
  const void* plain = pack(w.data(), 2 * kSize, k_, dtype_);
  const void* x = upload_typed(typed_data(random_floats(size_t(kRows) * k_, 6), dtype_));
  const float* bias = to_device(random_floats(size_t(2) * kSize, 7));
  const StepCounts* live = counts(kRows);
  std::vector<LoraMatrix> table;
  for (int part = 0; part < 2; ++part) {
    const int64_t size = 8 * lora_stride(kSize);
    table.push_back({upload_typed(typed_data(random_floats(size_t(8) * k_, 8 + part), dtype_)),
                     upload_typed(typed_data(random_floats(size_t(size), 18 + part), dtype_)), 0.5f,
                     8});
  }
  table[0].factors = to_device(random_floats(kSize, 28, 0.3f));
  const LoraMatrix* matrices = to_device(table);
  const LoraRows rows = group({1, 0, 1, 0, 0, 1, 1, 1, 1, 0, 1});
  float* t = allocate<float>(size_t(kRows) * 2 * lora_splits(k_) * max_rank_);
  lora_shrink(queue(), {rows, matrices, x, t, 2, 2, max_rank_, k_, kRows, 1, dtype_});
  LoraExpandArgs expand{rows,      matrices,       t, nullptr, nullptr, 2,      2,
                        max_rank_, {kSize, kSize}, 0, kRows,   1,       dtype_, k_};
  GemmArgs args{live,      x,
                plain,     allocate<float>(size_t(kRows) * 2 * kSize),
                bias,      RowKind::kToken,
                0,         kRows,
                2 * kSize, k_,
                dtype_,    DType::kF32};
  gemm(queue(), args);
  expand.y = static_cast<float*>(args.y);
  expand.y_stride = 2 * kSize;
  expand.bias = bias;
  lora_expand(queue(), expand);
  expand.bias = nullptr;
  const size_t bytes = size_t(kRows) * kSize * dtype_size(dtype_);
  uint8_t* want = marked(bytes);
  gated_act(queue(),
            {live, static_cast<float*>(args.y), want, kRows, kSize, Activation::kSilu, dtype_});
  GemmArgs raw = args;
  raw.weight = pairs;
  raw.bias = nullptr;
  raw.gated = GemmArgs::kRawGates;
  expand.y_stride = raw_gates_stride(2 * kSize);
  raw.y = expand.y = allocate<float>(size_t(kRows) * expand.y_stride);
  expand.weight = pairs;
  gemm(queue(), raw);
  lora_expand(queue(), expand);
  uint8_t* apart = marked(bytes);
  gated_act(queue(), {live, expand.y, apart, kRows, kSize, Activation::kSilu, dtype_, pairs, bias});
  gemm(queue(), raw);
  uint8_t* got = marked(bytes);
  expand.gated = got;
  expand.counts = live;
  expand.bias = bias;
  lora_expand(queue(), expand);
  ASSERT_EQ(read(apart, bytes), read(got, bytes));
  const auto a = read_typed(want, size_t(kRows) * kSize, dtype_);
  const auto b = read_typed(got, size_t(kRows) * kSize, dtype_);
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], (1 + std::abs(a[i])) * storage_error(dtype_) * 4) << i;
  }
  // Rows without an adapter have the bits of the gated product.
  uint8_t* gated = marked(bytes);
  args.weight = pairs;
  args.gated = 1;
  args.y = gated;
  args.out_dtype = dtype_;
  gemm(queue(), args);
  const auto fused = read(gated, bytes), parts = read(got, bytes);
  const size_t row_bytes = kSize * dtype_size(dtype_);
  for (const size_t r : {1, 3, 4, 9}) {
    ASSERT_EQ(std::memcmp(&fused[r * row_bytes], &parts[r * row_bytes], row_bytes), 0) << r;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, LoraTest,
                         testing::Combine(testing::Values(64, 333, 1024, 2568),
                                          testing::Values(DType::kF32, DType::kBF16),
                                          testing::Values(16)));
// Rows of a that are several of a kernel's steps, the last of them in part.
INSTANTIATE_TEST_SUITE_P(LargeRanks, LoraTest,
                         testing::Combine(testing::Values(64, 2568),
                                          testing::Values(DType::kF32, DType::kBF16),
                                          testing::Values(48, 128)));

}  // namespace
}  // namespace foretoken
