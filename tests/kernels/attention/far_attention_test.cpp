#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/attention/attention.h"
#include "kernels/attention/stepped_attention.h"

// RunLengths::kFar in buckets of so many rows that a GPU takes larger tiles: three warpgroups of
// attention_wgmma_wide.cu instead of two, and cuts what those who decode in front of prompts see.
// The bits are those of the portable kernels.
namespace foretoken {
namespace {

struct FarCase {
  int num_heads;
  int num_kv_heads;
  int head_dim;
  int block_size;
  float softcap = 0;
  bool sinks = false;
  int window = 0;
};

constexpr int kFarPositions = 7168, kFarSlots = 4;
constexpr int kQueries = 32 * 8192;  // of a bucket: rows times heads

class FarAttention : public test::SteppedAttention, public testing::WithParamInterface<FarCase> {
 protected:
  void SetUp() override {
    RowOpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (device().type() == DeviceType::kCpu) GTEST_SKIP() << "larger tiles are a GPU's";
    draw_tables(kFarSlots, kFarPositions, GetParam().block_size);
  }

  // Positions that no row sees hold no numbers.
  void* cache(uint64_t seed) {
    const FarCase c = GetParam();
    const size_t block = size_t(c.num_kv_heads) * block_size_ * c.head_dim;
    std::vector<float> values = random_floats((tables_.size() + 1) * block, seed);
    for (int slot = 0; slot < kFarSlots; ++slot) {
      for (int p = seen(slot); p < kFarPositions; ++p) {
        const size_t first = tables_[slot * max_blocks_ + p / block_size_] * block;
        for (int head = 0; head < c.num_kv_heads; ++head) {
          const size_t entry = size_t(head) * block_size_ + p % block_size_;
          std::fill_n(values.begin() + first + entry * c.head_dim, c.head_dim, std::nanf(""));
        }
      }
    }
    return upload_typed(typed_data(values, DType::kBF16));
  }

  AttentionArgs args_of(const std::vector<test::RowRun>& runs, int live_rows) {
    const FarCase c = GetParam();
    set_rows(runs, live_rows);
    const size_t width = size_t(c.num_heads) * c.head_dim;
    const auto rows = static_cast<size_t>(kQueries / c.num_heads);
    q_ = typed_data(random_floats(positions_.size() * width, 4), DType::kBF16);
    q_.bytes.resize(rows * width * sizeof(uint16_t), 0x5a);
    positions_.resize(rows, 0);
    slots_.resize(rows, 0);
    constexpr int64_t kFloats = 1 << 23;
    const KvLayer kv{cache(1), cache(2), c.num_kv_heads, c.block_size, c.head_dim, DType::kBF16};
    AttentionArgs args{.counts = counts(live_),
                       .q = upload_typed(q_),
                       .out = nullptr,
                       .positions = to_device(positions_),
                       .row_slot = to_device(slots_),
                       .block_tables = to_device(seen_tables()),
                       .workspace = allocate<float>(kFloats),
                       .workspace_floats = kFloats,
                       .kv = kv,
                       .max_blocks = max_blocks_,
                       .max_rows = static_cast<int32_t>(rows),
                       .num_heads = c.num_heads,
                       .window = c.window,
                       .scale = 1.0f / std::sqrt(float(c.head_dim)),
                       .softcap = c.softcap};
    if (c.sinks) args.sinks = to_device(random_floats(c.num_heads, 5));
    return args;
  }

  // Live rows and what lies behind them.
  std::vector<uint8_t> run(AttentionArgs args, RunLengths lengths, bool claims) {
    args.runs = lengths;
    args.out = marked(q_.bytes.size());
    if (claims) args.sync = to_device(std::vector<uint32_t>(sync_size(args), 0));
    attention(queue(), args);
    if (claims) {
      EXPECT_EQ(read(args.sync, sync_size(args)), std::vector<uint32_t>(sync_size(args), 0));
    }
    return read(static_cast<const uint8_t*>(args.out), q_.bytes.size());
  }
  static size_t sync_size(const AttentionArgs& args) {
    return size_t(AttentionArgs::kSyncRows) * args.num_heads;
  }

  TypedData q_;
};

TEST_P(FarAttention, HasThePortableBits) {
  const std::vector<test::RowRun> all = {
      {2, 6900, 3}, {0, 5800, 1000}, {1, 0, 449}, {1, 7000, 2}, {3, 1030, 33}};
  for (const int live_rows : {-1, 1100, 45, 0}) {
    AttentionArgs args = args_of(all, live_rows);
    args.family = AttentionFamily::kPortable;
    const auto want = run(args, RunLengths::kLong, false);
    args.family = AttentionFamily::kFlash;
    for (const RunLengths lengths : {RunLengths::kLong, RunLengths::kFar}) {
      for (const bool claims : {false, true}) {
        args.repeats = false;
        EXPECT_EQ(run(args, lengths, claims), want)
            << live_rows << " rows" << (claims ? ", claimed" : "");
        args.repeats = true;
        EXPECT_EQ(run(args, lengths, claims), want) << live_rows << " rows, repeated";
      }
    }
    const size_t row_bytes = size_t(GetParam().num_heads) * GetParam().head_dim * sizeof(uint16_t);
    expect_marked(want, live_ * row_bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, FarAttention,
                         testing::Values(FarCase{32, 8, 128, 16}, FarCase{8, 2, 64, 32},
                                         FarCase{8, 1, 128, 64}, FarCase{5, 1, 128, 16, 30.0f},
                                         FarCase{12, 4, 128, 32, 0, true},
                                         FarCase{8, 8, 64, 16, 20.0f, true},
                                         FarCase{8, 2, 128, 16, 0, false, 5000}));

}  // namespace
}  // namespace foretoken
