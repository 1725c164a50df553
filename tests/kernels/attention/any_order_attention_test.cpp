#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/attention/attention.h"
#include "kernels/attention/stepped_attention.h"

// AttentionFamily::kFlashInfer: devices may have other kernels for long runs then.
namespace foretoken {
namespace {

struct Heads {
  int num_heads;
  int num_kv_heads;
  int head_dim;
  int block_size;
};

using test::RowRun;

struct Step {
  const char* name;
  std::vector<RowRun> runs;
  int max_rows;
  RunLengths lengths = RunLengths::kUnknown;
  int live_rows = -1;  // -1: all
};

constexpr int kPositions = 1536, kSlots = 5;

class AnyOrderAttention : public test::SteppedAttention, public testing::WithParamInterface<Heads> {
 protected:
  void SetUp() override {
    RowOpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    draw_tables(kSlots, kPositions, GetParam().block_size);
    const size_t entries = (1 + tables_.size()) * GetParam().num_kv_heads * GetParam().block_size;
    k_ = random_floats(entries * GetParam().head_dim, 1);
    v_ = random_floats(entries * GetParam().head_dim, 2);
  }

  size_t width() const { return size_t(GetParam().num_heads) * GetParam().head_dim; }

  size_t entry(int slot, int position, int kv_head) const {
    const int block = tables_[slot * max_blocks_ + position / GetParam().block_size];
    const int64_t head = int64_t{block} * GetParam().num_kv_heads + kv_head;
    return size_t(head * GetParam().block_size + position % GetParam().block_size) *
           GetParam().head_dim;
  }

  // The rows of a step; those behind its runs go on from the last one.
  void set_step(const Step& step) {
    set_rows(step.runs, step.live_rows);
    while (static_cast<int>(positions_.size()) < step.max_rows) {
      slots_.push_back(slots_.back());
      positions_.push_back(std::min(positions_.back() + 1, kPositions - 1));
    }
  }

  // What no row sees holds no numbers, and blocks without anything seen do not exist.
  std::vector<int32_t> hide_unseen(std::vector<float>& k, std::vector<float>& v) const {
    for (int slot = 0; slot < kSlots; ++slot) {
      for (int p = seen(slot); p < kPositions; ++p) {
        for (int head = 0; head < GetParam().num_kv_heads; ++head) {
          const size_t at = entry(slot, p, head);
          std::fill_n(k.begin() + at, GetParam().head_dim, std::nanf(""));
          std::fill_n(v.begin() + at, GetParam().head_dim, std::nanf(""));
        }
      }
    }
    return seen_tables();
  }

  AttentionArgs args_of(const Step& step) {
    set_step(step);
    std::vector<float> k = k_, v = v_;
    const std::vector<int32_t> tables = hide_unseen(k, v);
    const TypedData stored_k = typed_data(k, DType::kBF16), stored_v = typed_data(v, DType::kBF16);
    k_values_ = stored_k.values;
    v_values_ = stored_v.values;
    q_ = typed_data(random_floats(positions_.size() * width(), 4), DType::kBF16);
    constexpr int64_t kFloats = 1 << 23;
    const KvLayer kv{upload_typed(stored_k), upload_typed(stored_v), GetParam().num_kv_heads,
                     GetParam().block_size,  GetParam().head_dim,    DType::kBF16};
    return {.counts = counts(live_),
            .q = upload_typed(q_),
            .out = marked(q_.bytes.size()),
            .positions = to_device(positions_),
            .row_slot = to_device(slots_),
            .block_tables = to_device(tables),
            .workspace = allocate<float>(kFloats),
            .workspace_floats = kFloats,
            .kv = kv,
            .max_blocks = max_blocks_,
            .max_rows = step.max_rows,
            .num_heads = GetParam().num_heads,
            .window = 0,
            .scale = scale(),
            .runs = step.lengths,
            .family = AttentionFamily::kFlashInfer};
  }
  float scale() const { return 1.0f / std::sqrt(float(GetParam().head_dim)); }

  std::vector<uint8_t> out_of(const AttentionArgs& args) {
    return read(static_cast<const uint8_t*>(args.out), q_.bytes.size());
  }
  std::vector<uint8_t> run(AttentionArgs args) {
    args.out = marked(q_.bytes.size());
    attention(queue(), args);
    return out_of(args);
  }

  // Softmax weights may be rounded to bfloat16 as well: 2^-8 of sum(w |v|).
  void expect_row(const float* y, int row, int head) const {
    const int dim = GetParam().head_dim;
    const int kv_head = head / (GetParam().num_heads / GetParam().num_kv_heads);
    const float* q = &q_.values[row * width() + size_t(head) * dim];
    std::vector<double> sums(dim, 0.0), sizes(dim, 0.0);
    double all = 0;
    for (int p = 0; p <= positions_[row]; ++p) {
      const size_t at = entry(slots_[row], p, kv_head);
      double score = 0;
      for (int d = 0; d < dim; ++d) score += double(q[d]) * k_values_[at + d];
      const double weight = std::exp(score * scale());
      all += weight;
      for (int d = 0; d < dim; ++d) {
        sums[d] += weight * v_values_[at + d];
        sizes[d] += weight * std::abs(v_values_[at + d]);
      }
    }
    for (int d = 0; d < dim; ++d) {
      const double bound = 4e-3 * (sizes[d] + std::abs(sums[d])) / all + 1e-5;
      ASSERT_NEAR(y[d], sums[d] / all, bound) << "row " << row << " head " << head << " of " << d;
    }
  }

  // The rows at the ends of runs and of tiles, and some others.
  void expect_step(const Step& step) {
    const AttentionArgs args = args_of(step);
    attention(queue(), args);
    const auto bytes = out_of(args);
    const auto y = to_floats(bytes, DType::kBF16);
    for (int row = 0; row < live_; ++row) {
      const bool begins = row == 0 || slots_[row] != slots_[row - 1];
      const bool ends = row + 1 == live_ || slots_[row] != slots_[row + 1];
      if (!begins && !ends && row % 64 != 0 && row % 64 != 63 && row % 29 != 0) continue;
      const int head = row % GetParam().num_heads;
      expect_row(&y[row * width() + size_t(head) * GetParam().head_dim], row, head);
      if (HasFatalFailure()) return;
    }
    const int last = std::max(live_ - 1, 0);
    for (int head = 0; head < GetParam().num_heads && live_ > 0; ++head) {
      expect_row(&y[last * width() + size_t(head) * GetParam().head_dim], last, head);
    }
    expect_marked(bytes, live_ * width() * sizeof(uint16_t));
  }

  std::vector<float> k_, v_, k_values_, v_values_;
  TypedData q_;
};

const Step kMixed{
    "long and short", {{0, 500, 1}, {1, 0, 200}, {2, 700, 3}, {3, 10, 32}, {4, 3, 33}}, 512};

std::vector<Step> steps() {
  return {{"one long run", {{0, 0, 300}}, 512},
          {"a row more than a tile", {{0, 0, 193}, {1, 0, 129}}, 512},
          {"whole tiles", {{0, 0, 384}}, 384},
          {"several runs", {{0, 0, 130}, {1, 0, 64}, {2, 0, 33}, {3, 0, 257}}, 512},
          kMixed,
          {"behind earlier positions", {{0, 701, 320}, {1, 1200, 40}, {2, 95, 97}}, 512},
          {"rows that are not live", {{0, 40, 150}, {1, 0, 200}}, 512, RunLengths::kLong, 290},
          {"a run that live rows make short", {{0, 0, 400}}, 512, RunLengths::kUnknown, 20},
          {"no rows", {{0, 0, 400}}, 512, RunLengths::kUnknown, 0},
          {"no long run", {{0, 5, 4}, {1, 900, 32}}, 512},
          {"a bucket of prompts", {{0, 1, 1100}, {1, 5, 2}, {2, 800, 600}}, 2048},
          {"far behind", {{0, 1100, 200}, {1, 1400, 2}, {2, 1300, 1}}, 512, RunLengths::kFar}};
}

TEST_P(AnyOrderAttention, MatchesDouble) {
  for (const Step& step : steps()) {
    SCOPED_TRACE(step.name);
    expect_step(step);
    if (HasFatalFailure()) return;
  }
}

TEST_P(AnyOrderAttention, ShortRunsKeepTheirBits) {
  AttentionArgs args = args_of(kMixed);
  const auto any = run(args);
  args.family = AttentionFamily::kFlash;
  const auto own = run(args);
  const size_t row_bytes = width() * sizeof(uint16_t);
  const auto bytes_of = [&](const std::vector<uint8_t>& bytes, int row, int rows) {
    return std::string(bytes.begin() + row * row_bytes, bytes.begin() + (row + rows) * row_bytes);
  };
  int row = 0;
  int num_different = 0;
  for (const RowRun& part : kMixed.runs) {
    const bool is_equal = bytes_of(any, row, part.rows) == bytes_of(own, row, part.rows);
    EXPECT_TRUE(is_equal || part.rows > kShortRun) << "slot " << part.slot;
    num_different += is_equal ? 0 : 1;
    row += part.rows;
  }
  // Else the kernel of the library was not. Few positions may give equal bits.
  EXPECT_EQ(num_different > 0, has_attention(device(), AttentionFamily::kFlashInfer));
}

// As in layer after layer: the same rows, other keys and values.
TEST_P(AnyOrderAttention, RepeatsHaveTheSameBits) {
  for (const Step& step : steps()) {
    AttentionArgs args = args_of(step);
    const auto alone = run(args);
    std::swap(args.kv.k, args.kv.v);
    run(args);
    std::swap(args.kv.k, args.kv.v);
    args.repeats = true;
    EXPECT_EQ(run(args), alone) << step.name;
  }
}

// More than a step that is planned at once: rows of sequences that decode in front, behind prompts,
// and over the end of the rows that are planned.
std::vector<Step> long_steps() {
  return {{"decoding in front", {{0, 1500, 1}, {1, 700, 3}, {2, 900, 32}, {3, 0, 1100}}, 2048},
          {"over the end", {{0, 1500, 4}, {3, 0, 990}, {4, 3, 32}, {1, 20, 31}, {2, 0, 700}}, 2048},
          {"up to the end", {{0, 1500, 4}, {3, 0, 990}, {4, 3, 30}, {1, 20, 1}, {2, 0, 700}}, 2048},
          {"a prompt over the end", {{0, 700, 2}, {3, 0, 1015}, {4, 3, 20}, {2, 9, 40}}, 1536},
          {"prompts behind", {{3, 0, 1000}, {2, 0, 1100}, {0, 1500, 4}, {1, 700, 1}}, 3072},
          {"few live rows", {{0, 1500, 4}, {1, 7, 1}, {3, 0, 1300}}, 2048, RunLengths::kLong, 30},
          {"far behind", {{0, 1500, 4}, {1, 7, 1}, {3, 200, 1300}}, 2048, RunLengths::kFar}};
}

TEST_P(AnyOrderAttention, StepsOfManyRowsHaveTheBitsOfThePortableKernels) {
  for (Step step : long_steps()) {
    SCOPED_TRACE(step.name);
    if (step.lengths == RunLengths::kUnknown) step.lengths = RunLengths::kLong;
    AttentionArgs args = args_of(step);
    args.family = AttentionFamily::kPortable;
    const auto portable = run(args);
    args.family = AttentionFamily::kFlash;
    EXPECT_EQ(run(args), portable);
    std::swap(args.kv.k, args.kv.v);
    run(args);
    std::swap(args.kv.k, args.kv.v);
    args.repeats = true;
    EXPECT_EQ(run(args), portable);
    expect_step(step);
    if (HasFatalFailure()) return;
  }
}

TEST_P(AnyOrderAttention, GraphsHaveTheSameBits) {
  AttentionArgs first = args_of(steps()[0]);
  const auto want_first = run(first);
  first.out = marked(q_.bytes.size());
  AttentionArgs second = args_of(kMixed);
  const auto want_second = run(second);
  second.out = marked(q_.bytes.size());
  queue().begin_capture();
  attention(queue(), first);
  attention(queue(), second);
  const auto graph = queue().end_capture();
  ASSERT_NE(graph, nullptr);
  for (int i = 0; i < 3; ++i) queue().replay(*graph);
  EXPECT_EQ(out_of(first), want_first);
  EXPECT_EQ(out_of(second), want_second);
}

INSTANTIATE_TEST_SUITE_P(Shapes, AnyOrderAttention,
                         testing::Values(Heads{4, 4, 64, 16}, Heads{8, 2, 64, 32},
                                         Heads{8, 1, 64, 16}, Heads{2, 2, 128, 16},
                                         Heads{8, 2, 128, 16}, Heads{8, 1, 128, 64},
                                         Heads{6, 2, 128, 32}));

}  // namespace
}  // namespace foretoken
