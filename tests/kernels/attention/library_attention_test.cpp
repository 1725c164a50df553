#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/attention/attention.h"
#include "kernels/attention/stepped_attention.h"

// The families of libraries over latents; CPUs compute them as any other.
namespace foretoken::library_attention {
namespace {

struct LatentCase {
  AttentionFamily family;
  int num_heads;
  int block_size;
};

using test::RowRun;

struct Step {
  const char* name;
  std::vector<RowRun> runs;
  int max_rows;
  int live_rows = -1;  // -1: all
};

constexpr int kDim = 576, kValues = 512, kPositions = 1024, kSlots = 5;

class LibraryAttention : public test::SteppedAttention,
                         public testing::WithParamInterface<LatentCase> {
 protected:
  void SetUp() override {
    RowOpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!is_cpu() && !has_attention(device(), GetParam().family)) {
      GTEST_SKIP() << "the plug-in or the device has no such kernels";
    }
    draw_tables(kSlots, kPositions, GetParam().block_size);
    keys_ = typed_data(random_floats((1 + tables_.size()) * GetParam().block_size * kDim, 1),
                       DType::kBF16);
  }

  bool is_cpu() { return device().type() == DeviceType::kCpu; }

  size_t entry(int slot, int position) const {
    const int block = tables_[slot * max_blocks_ + position / GetParam().block_size];
    return size_t(block * GetParam().block_size + position % GetParam().block_size) * kDim;
  }

  // What no row sees holds no numbers, and blocks without anything seen do not exist.
  std::vector<int32_t> hide_unseen(std::vector<float>& keys) const {
    for (int slot = 0; slot < kSlots; ++slot) {
      for (int p = seen(slot); p < kPositions; ++p) {
        std::fill_n(keys.begin() + entry(slot, p), kDim, std::nanf(""));
      }
    }
    return seen_tables();
  }

  AttentionArgs args_of(const Step& step) {
    set_rows(step.runs, step.live_rows);
    slots_.resize(step.max_rows, 0);
    positions_.resize(step.max_rows, 0);
    std::vector<float> keys = keys_.values;
    const std::vector<int32_t> tables = hide_unseen(keys);
    const int heads = GetParam().num_heads;
    q_ = typed_data(random_floats(size_t(step.max_rows) * heads * kDim, 4), DType::kBF16);
    void* stored = upload_typed(typed_data(keys, DType::kBF16));
    const int64_t floats = is_cpu() ? 1 << 10 : 24 << 20;
    if (workspace_ == nullptr) workspace_ = allocate<float>(static_cast<size_t>(floats));
    return {.counts = counts(live_),
            .q = upload_typed(q_),
            .out = nullptr,
            .positions = to_device(positions_),
            .row_slot = to_device(slots_),
            .block_tables = to_device(tables),
            .workspace = workspace_,
            .workspace_floats = floats,
            .kv = {.k = stored,
                   .v = stored,
                   .num_kv_heads = 1,
                   .block_size = GetParam().block_size,
                   .head_dim = kDim,
                   .dtype = DType::kBF16,
                   .value_dim = kValues},
            .max_blocks = max_blocks_,
            .max_rows = step.max_rows,
            .num_heads = heads,
            .window = 0,
            .scale = kScale,
            .family = GetParam().family};
  }

  size_t row_bytes() const { return size_t(GetParam().num_heads) * kValues * sizeof(uint16_t); }
  std::vector<uint8_t> run(AttentionArgs args) {
    const size_t bytes = args.max_rows * row_bytes();
    args.out = marked(bytes);
    attention(queue(), args);
    return read(static_cast<const uint8_t*>(args.out), bytes);
  }

  // Weights and partial results may be rounded to bfloat16: 2^-7 of sum(w |v|).
  void expect_row(const float* y, int row, int head) const {
    const float* q = &q_.values[(size_t(row) * GetParam().num_heads + head) * kDim];
    std::vector<double> sums(kValues, 0.0), sizes(kValues, 0.0);
    double all = 0;
    for (int p = 0; p <= positions_[row]; ++p) {
      const float* key = &keys_.values[entry(slots_[row], p)];
      double score = 0;
      for (int d = 0; d < kDim; ++d) score += double(q[d]) * key[d];
      const double weight = std::exp(score * double(kScale));
      all += weight;
      for (int d = 0; d < kValues; ++d) {
        sums[d] += weight * key[d];
        sizes[d] += weight * std::abs(key[d]);
      }
    }
    for (int d = 0; d < kValues; ++d) {
      const double bound = 8e-3 * (sizes[d] + std::abs(sums[d])) / all + 1e-5;
      ASSERT_NEAR(y[d], sums[d] / all, bound) << "row " << row << " head " << head << " of " << d;
    }
  }

  // Each row with one head, the last one with several.
  void expect_step(const Step& step) {
    const AttentionArgs args = args_of(step);
    const auto bytes = run(args);
    const auto y = to_floats(bytes, DType::kBF16);
    const int heads = GetParam().num_heads;
    for (int row = 0; row < live_; ++row) {
      if (row > 40 && row % 17 != 0) continue;
      for (int head = row + 1 == live_ ? 0 : row % heads; head < heads; head += (heads + 7) / 8) {
        expect_row(&y[(size_t(row) * heads + head) * kValues], row, head);
        if (HasFatalFailure()) return;
        if (row + 1 != live_) break;
      }
    }
    expect_marked(bytes, live_ * row_bytes());
  }

  static constexpr float kScale = 0.05f;
  float* workspace_ = nullptr;
  TypedData keys_, q_;
};

std::vector<Step> steps() {
  return {{"one row", {{0, 700, 1}}, 1},
          {"the first row", {{2, 0, 1}}, 1},
          {"one verification", {{1, 1000, 4}}, 4},
          {"a verification over a block's end", {{1, 62, 6}}, 8},
          {"several", {{0, 63, 1}, {1, 900, 4}, {2, 127, 5}, {3, 1, 3}, {4, 511, 2}}, 16},
          {"with prompts", {{0, 1000, 4}, {1, 0, 70}, {2, 640, 9}, {3, 3, 1}}, 96},
          {"rows that are not live", {{0, 200, 4}, {1, 300, 4}, {2, 10, 4}}, 16, 6},
          {"no rows", {{0, 200, 4}}, 4, 0}};
}

TEST_P(LibraryAttention, MatchesDouble) {
  for (const Step& step : steps()) {
    SCOPED_TRACE(step.name);
    expect_step(step);
    if (HasFatalFailure()) return;
  }
}

// As in layer after layer: the same rows, other keys.
TEST_P(LibraryAttention, RepeatsHaveTheSameBits) {
  for (const Step& step : steps()) {
    AttentionArgs args = args_of(step);
    const auto alone = run(args);
    args.repeats = true;
    EXPECT_EQ(run(args), alone) << step.name;
  }
}

TEST_P(LibraryAttention, GraphsHaveTheSameBits) {
  const Step step = steps()[4];
  AttentionArgs args = args_of(step);
  const auto wanted = run(args);
  args.out = marked(wanted.size());
  queue().begin_capture();
  attention(queue(), args);
  const auto graph = queue().end_capture();
  ASSERT_NE(graph, nullptr);
  for (int i = 0; i < 3; ++i) queue().replay(*graph);
  EXPECT_EQ(read(static_cast<const uint8_t*>(args.out), wanted.size()), wanted);
}

std::string case_name(const testing::TestParamInfo<LatentCase>& info) {
  return std::string(attention_family_name(info.param.family)) + "_" +
         std::to_string(info.param.num_heads) + "_heads_blocks_of_" +
         std::to_string(info.param.block_size);
}

INSTANTIATE_TEST_SUITE_P(Shapes, LibraryAttention,
                         testing::Values(LatentCase{AttentionFamily::kFlashMla, 16, 64},
                                         LatentCase{AttentionFamily::kFlashMla, 24, 64},
                                         LatentCase{AttentionFamily::kFlashMla, 128, 64},
                                         LatentCase{AttentionFamily::kFlashInferMla, 16, 16},
                                         LatentCase{AttentionFamily::kFlashInferMla, 32, 64},
                                         LatentCase{AttentionFamily::kFlashInferMla, 128, 32},
                                         LatentCase{AttentionFamily::kCutlassMla, 16, 32},
                                         LatentCase{AttentionFamily::kCutlassMla, 128, 64}),
                         case_name);

}  // namespace
}  // namespace foretoken::library_attention
