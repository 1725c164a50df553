#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "kernels/attention/attention.h"
#include "support/row_ops.h"

// Latent attention of rows that have a list of entries each, as where an indexer chooses them:
// tables of blocks of one entry.
namespace foretoken::chosen_attention {
namespace {

constexpr int kDim = 576, kValues = 512, kEntries = 3000, kMaxSeen = 2048, kBlock = 16;

class ChosenAttention : public RowOpTest, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    RowOpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    keys_ = typed_data(random_floats(size_t{kEntries} * kDim, 1), DType::kBF16);
    workspace_ = allocate<float>(size_t{kWorkspace});
    sync_ = to_device(std::vector<uint32_t>(size_t{AttentionArgs::kSyncRows} * heads()));
  }
  static int heads() { return GetParam(); }

  // Row r sees seen[r] entries in an order of its own; what is behind them is no entry.
  std::vector<int32_t> lists_of(const std::vector<int>& seen) const {
    std::vector<int32_t> lists(seen.size() * kMaxSeen, 1 << 30);
    for (size_t r = 0; r < seen.size(); ++r) {
      for (int i = 0; i < seen[r]; ++i) {
        lists[r * kMaxSeen + size_t(i)] = int32_t((size_t(i) * 997 + r * 131) % kEntries);
      }
    }
    return lists;
  }

  AttentionArgs args_of(const std::vector<int>& seen, int max_rows) {
    std::vector<int32_t> positions(seen.begin(), seen.end()), slots(seen.size());
    for (int32_t& position : positions) --position;
    std::iota(slots.begin(), slots.end(), 0);
    positions.resize(size_t(max_rows));
    slots.resize(size_t(max_rows));
    AttentionArgs args{};
    args.counts = counts(int(seen.size()));
    args.q =
        upload_typed(typed_data(random_floats(size_t(max_rows) * heads() * kDim, 4), DType::kBF16));
    args.positions = to_device(positions);
    args.row_slot = to_device(slots);
    args.workspace = workspace_;
    args.workspace_floats = kWorkspace;
    args.sync = sync_;
    args.kv = {.k = nullptr,
               .v = nullptr,
               .num_kv_heads = 1,
               .block_size = 1,
               .head_dim = kDim,
               .dtype = DType::kBF16,
               .value_dim = kValues};
    args.max_rows = max_rows;
    args.num_heads = heads();
    args.scale = 0.05f;
    args.runs = RunLengths::kShort;
    return args;
  }

  void set_keys(AttentionArgs& args, const std::vector<float>& keys) {
    args.kv.k = args.kv.v = upload_typed(typed_data(keys, DType::kBF16));
  }

  std::vector<uint8_t> run(AttentionArgs args, AttentionFamily family) {
    const size_t bytes = size_t(args.max_rows) * heads() * kValues * sizeof(uint16_t);
    args.family = family;
    args.out = marked(bytes);
    attention(queue(), args);
    return read(static_cast<const uint8_t*>(args.out), bytes);
  }

  // The entries of each row side by side, in blocks; what no row sees is no number.
  std::vector<uint8_t> run_copied(AttentionArgs args, const std::vector<int>& seen,
                                  const std::vector<int32_t>& lists) {
    std::vector<float> keys(seen.size() * kMaxSeen * kDim, std::nanf(""));
    for (size_t r = 0; r < seen.size(); ++r) {
      for (size_t i = 0; i < size_t(seen[r]); ++i) {
        std::copy_n(keys_.values.begin() + ptrdiff_t{lists[r * kMaxSeen + i]} * kDim, kDim,
                    keys.begin() + ptrdiff_t((r * kMaxSeen + i) * kDim));
      }
    }
    set_keys(args, keys);
    std::vector<int32_t> tables(seen.size() * (kMaxSeen / kBlock));
    std::iota(tables.begin(), tables.end(), 0);
    args.block_tables = to_device(tables);
    args.max_blocks = kMaxSeen / kBlock;
    args.kv.block_size = kBlock;
    return run(args, AttentionFamily::kPortable);
  }

  static constexpr int64_t kWorkspace = 24 << 20;
  TypedData keys_;
  float* workspace_ = nullptr;
  uint32_t* sync_ = nullptr;
};

struct Step {
  const char* name;
  std::vector<int> seen;
  int max_rows;
};

std::vector<Step> steps() {
  std::vector<int> many;
  for (int r = 0; r < 18; ++r) many.push_back(1 + r * 331 % kMaxSeen);
  return {{"one row", {2048}, 1},
          {"few entries", {1, 2, 63, 64, 65}, 8},
          {"a verification", {2045, 2046, 2047, 2048}, 4},
          {"several", {700, 129, 2048, 512, 513, 1023}, 16},
          {"many", many, 20}};
}

TEST_P(ChosenAttention, HasTheBitsOfEntriesSideBySide) {
  for (const Step& step : steps()) {
    SCOPED_TRACE(step.name);
    const std::vector<int32_t> lists = lists_of(step.seen);
    AttentionArgs args = args_of(step.seen, step.max_rows);
    set_keys(args, keys_.values);
    args.block_tables = to_device(lists);
    args.max_blocks = kMaxSeen;
    const auto portable = run(args, AttentionFamily::kPortable);
    EXPECT_TRUE(run(args, AttentionFamily::kFlash) == portable);
    EXPECT_TRUE(run(args, AttentionFamily::kFlash) == portable) << "again";
    EXPECT_TRUE(run_copied(args, step.seen, lists) == portable);
    expect_marked(portable, step.seen.size() * size_t(heads()) * kValues * sizeof(uint16_t));
  }
}

// Without room for partial results a cluster takes whole rows.
TEST_P(ChosenAttention, WithoutRoomHasTheSameBits) {
  const Step step = steps()[3];
  AttentionArgs args = args_of(step.seen, step.max_rows);
  set_keys(args, keys_.values);
  args.block_tables = to_device(lists_of(step.seen));
  args.max_blocks = kMaxSeen;
  const auto wanted = run(args, AttentionFamily::kPortable);
  args.workspace = nullptr;
  args.workspace_floats = 0;
  EXPECT_TRUE(run(args, AttentionFamily::kFlash) == wanted);
}

INSTANTIATE_TEST_SUITE_P(Heads, ChosenAttention, testing::Values(16, 24, 128),
                         [](const auto& test) { return std::to_string(test.param); });

}  // namespace
}  // namespace foretoken::chosen_attention
