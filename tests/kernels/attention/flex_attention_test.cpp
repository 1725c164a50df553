#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/float8.h"
#include "device/attention_families.h"
#include "kernels/attention/attention.h"
#include "kernels/flex/flex_program.h"
#include "support/int8_data.h"
#include "support/row_ops.h"

// Attention with masks and scores of a user's own, against double precision that was written by
// hand for each.

namespace foretoken {
namespace {

constexpr int kFlexHeads = 4, kFlexKvHeads = 2, kFlexBlock = 16, kFlexBlocks = 24;

struct FlexCase {
  const char* mask;
  const char* score;
  std::function<bool(int q, int kv, int h)> sees;
  std::function<double(double score, int q, int kv, int h)> scored;
};

bool sees_all(int, int, int) { return true; }
double as_it_is(double score, int, int, int) { return score; }

std::vector<FlexCase> flex_cases() {
  const auto alibi = [](double s, int q, int kv, int h) {
    return s - std::exp2(-2.0 * (h + 1)) * (q - kv);
  };
  return {
      {"kv <= q", "", sees_all, as_it_is},
      {"kv <= q and q - kv < 128", "", [](int q, int kv, int) { return q - kv < 128; }, as_it_is},
      {"kv <= q and q - kv < 7", "", [](int q, int kv, int) { return q - kv < 7; }, as_it_is},
      {"(kv <= q) & (q - kv <= 64)", "", [](int q, int kv, int) { return q - kv <= 64; }, as_it_is},
      {"0 <= q - kv < 32 or kv < 4 and kv <= q", "",
       [](int q, int kv, int) { return q - kv < 32 || kv < 4; }, as_it_is},
      {"kv <= q and q // 50 == kv // 50", "", [](int q, int kv, int) { return q / 50 == kv / 50; },
       as_it_is},
      {"kv <= q and (kv % 3 == 0 or q == kv)", "",
       [](int q, int kv, int) { return kv % 3 == 0 || q == kv; }, as_it_is},
      {"kv <= q and q - kv < (16 if h % 2 == 0 else 200)", "",
       [](int q, int kv, int h) { return q - kv < (h % 2 == 0 ? 16 : 200); }, as_it_is},
      {"kv <= q and not (20 <= kv < 90)", "", [](int, int kv, int) { return kv < 20 || kv >= 90; },
       as_it_is},
      {"q_idx >= kv_idx and (kv_idx < 40 or q_idx - kv_idx < 10)", "",
       [](int q, int kv, int) { return kv < 40 || q - kv < 10; }, as_it_is},
      {"kv <= q and abs(q - kv - 60) < 25 or kv == q", "",
       [](int q, int kv, int) { return std::abs(q - kv - 60) < 25 || kv == q; }, as_it_is},
      {"kv <= q and kv < 0", "", [](int, int, int) { return false; }, as_it_is},
      {"", "score - 0.1 * (q - kv)", sees_all,
       [](double s, int q, int kv, int) { return s - 0.1 * (q - kv); }},
      {"", "20 * tanh(score / 20)", sees_all,
       [](double s, int, int, int) { return 20 * std::tanh(s / 20); }},
      {"", "2 * tanh(score)", sees_all, [](double s, int, int, int) { return 2 * std::tanh(s); }},
      {"", "score - exp(-0.6931471805599453 * 2 * (h + 1)) * (q - kv)", sees_all, alibi},
      {"kv <= q and q - kv < 100", "score - exp(-0.6931471805599453 * 2 * (h + 1)) * (q - kv)",
       [](int q, int kv, int) { return q - kv < 100; }, alibi},
      {"", "score * sqrt(1 + kv) / 8", sees_all,
       [](double s, int, int kv, int) { return s * std::sqrt(1.0 + kv) / 8; }},
      {"", "where(kv % 2 == 0, score, min(score, 0.5))", sees_all,
       [](double s, int, int kv, int) { return kv % 2 == 0 ? s : std::min(s, 0.5); }},
      {"", "score + log(1 + max(q - kv, 1)) * 0.3 if h == 1 else score + floor(kv / 100)", sees_all,
       [](double s, int q, int kv, int h) {
         return h == 1 ? s + std::log(1.0 + std::max(q - kv, 1)) * 0.3 : s + std::floor(kv / 100.0);
       }},
      {"", "score + 0.25 * cos(q * 0.5) * sin(kv)", sees_all,
       [](double s, int q, int kv, int) { return s + 0.25 * std::cos(q * 0.5) * std::sin(kv); }},
      {"kv <= q and q - kv < 300", "score / (1 + (q - kv) % 7)",
       [](int q, int kv, int) { return q - kv < 300; },
       [](double s, int q, int kv, int) { return s / (1 + (q - kv) % 7); }},
  };
}

// Heads of 64 and more in bfloat16 have a kernel of tensor cores of their own on GPUs.
struct FlexTypes {
  DType dtype;
  int dim;
  KvFormat format = KvFormat::kPlain;
};

class FlexAttentionTest : public RowOpTest, public testing::WithParamInterface<FlexTypes> {
 protected:
  static DType dtype() { return GetParam().dtype; }
  static int dim() { return GetParam().dim; }
  static KvFormat format() { return GetParam().format; }
  // Keys or values of the cache.
  static TypedData cache_data(size_t count, int seed) {
    if (format() == KvFormat::kInt8) return int8_data(random_floats(count, seed), size_t(dim()));
    TypedData data = typed_data(random_floats(count, seed), dtype());
    if (format() == KvFormat::kPlain) return data;
    data.bytes.resize(count);
    for (size_t i = 0; i < count; ++i) {
      data.bytes[i] = e4m3_code(data.values[i]);
      data.values[i] = e4m3_value(data.bytes[i]);
    }
    return data;
  }
  // As engines have it for these heads.
  static FlexProgram program_of(const char* mask, const char* score, bool among_chosen = false) {
    auto program = parse_flex(mask, score, among_chosen);
    EXPECT_TRUE(program.ok()) << program.status().message();
    FlexProgram made = program.ok() ? program.value() : FlexProgram();
    const int32_t sizes[] = {dim()};
    add_tile_sources(made, sizes, true);
    return made;
  }

  void SetUp() override {
    RowOpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const size_t count = size_t{1 + kFlexBlocks} * kFlexKvHeads * kFlexBlock * dim();
    k_ = cache_data(count, 1);
    v_ = cache_data(count, 2);
    q_ = typed_data(random_floats(positions_.size() * kFlexHeads * dim(), 3), dtype());
    table_.resize(kFlexBlocks);
    std::iota(table_.begin(), table_.end(), 1);
    std::shuffle(table_.begin(), table_.end(), std::mt19937(3));
    args_ = {.counts = counts(num_rows()),
             .q = upload_typed(q_),
             .out = marked(q_.bytes.size()),
             .positions = to_device(positions_),
             .row_slot = to_device(std::vector<int32_t>(positions_.size(), 0)),
             .block_tables = to_device(table_),
             .workspace = allocate<float>(1 << 20),
             .workspace_floats = 1 << 20,
             .kv = {upload_typed(k_), upload_typed(v_), kFlexKvHeads, kFlexBlock, dim(), dtype()},
             .max_blocks = kFlexBlocks,
             .max_rows = num_rows(),
             .num_heads = kFlexHeads,
             .window = 0,
             .scale = kScale,
             .family = AttentionFamily::kFlex};
    args_.kv.format = format();
  }
  int num_rows() const { return static_cast<int>(positions_.size()); }

  std::vector<uint8_t> run(const FlexProgram* program) {
    AttentionArgs args = args_;
    args.flex = program;
    args.out = marked(q_.bytes.size());
    attention(queue(), args);
    return read(static_cast<const uint8_t*>(args.out), q_.bytes.size());
  }

  // seen: positions before it are looked at.
  std::vector<double> reference(const FlexCase& c, int row, int h, int seen) const {
    const int q = positions_[row];
    std::vector<double> out(dim(), 0.0);
    double sum = 0;
    for (int kv = 0; kv < seen; ++kv) {
      if (!c.sees(q, kv, h)) continue;
      const size_t at = ((size_t(table_[kv / kFlexBlock]) * kFlexKvHeads + h / 2) * kFlexBlock +
                         kv % kFlexBlock) *
                        dim();
      double score = 0;
      for (int d = 0; d < dim(); ++d) {
        score += double(q_.values[(size_t(row) * kFlexHeads + h) * dim() + d]) * k_.values[at + d];
      }
      const double weight = std::exp(c.scored(score * kScale * key_scales_[h / 2], q, kv, h));
      sum += weight;
      for (int d = 0; d < dim(); ++d) out[d] += weight * v_.values[at + d] * value_scales_[h / 2];
    }
    for (double& x : out) x = sum > 0 ? x / sum : 0;
    return out;
  }

  void expect_near(const FlexCase& c, const std::vector<float>& y, int row, int seen) const {
    for (int h = 0; h < kFlexHeads; ++h) {
      const std::vector<double> want = reference(c, row, h, seen);
      for (int d = 0; d < dim(); ++d) {
        const double bound = std::abs(want[d]) * storage_error(dtype()) + rounded() + 4e-5;
        ASSERT_NEAR(y[(size_t(row) * kFlexHeads + h) * dim() + d], want[d], bound)
            << "row " << row << " head " << h;
      }
    }
  }

  // Weights enter the tensor cores as bfloat16, and values are of about 1. Queries of 16 bits move
  // scores by about 1e-4.
  static double rounded() {
    if (dtype() == DType::kBF16 && dim() >= 64) return 8e-3;
    return format() == KvFormat::kInt8 ? 2e-3 : 0;
  }

  static constexpr float kScale = 0.4f;
  std::vector<int32_t> positions_ = {0, 1, 31, 32, 33, 127, 200, 255, 256, 257, 383};
  std::vector<int32_t> table_;
  std::vector<float> key_scales_ = {1, 1}, value_scales_ = {1, 1};
  TypedData k_, v_, q_;
  AttentionArgs args_{};
};

TEST_P(FlexAttentionTest, EveryMaskAndScoreMatchesDouble) {
  for (const FlexCase& c : flex_cases()) {
    SCOPED_TRACE(std::string(c.mask) + "; " + c.score);
    const FlexProgram program = program_of(c.mask, c.score);
    const auto y = to_floats(run(&program), dtype());
    for (int row = 0; row < num_rows(); ++row) expect_near(c, y, row, positions_[row] + 1);
  }
}

// Rows of a run from position 0 on see that run to its end, where the mask lets them; others, of
// the same table behind it, do not.
TEST_P(FlexAttentionTest, PromptsSeeThemselves) {
  constexpr int kPromptLen = 150;
  positions_.resize(kPromptLen);
  std::iota(positions_.begin(), positions_.end(), 0);
  std::vector<int32_t> slots(kPromptLen, 1);
  for (const int behind : {160, 161, 200}) {
    positions_.push_back(behind);
    slots.push_back(0);
  }
  q_ = typed_data(random_floats(positions_.size() * kFlexHeads * dim(), 4), dtype());
  std::vector<int32_t> tables = table_;
  tables.insert(tables.end(), table_.begin(), table_.end());
  args_.counts = counts(num_rows());
  args_.q = upload_typed(q_);
  args_.positions = to_device(positions_);
  args_.row_slot = to_device(slots);
  args_.block_tables = to_device(tables);
  args_.max_rows = num_rows();
  const FlexCase cases[] = {
      {"kv <= q or prompt", "", sees_all, as_it_is},
      {"(kv <= q or prompt) and abs(q - kv) < 40", "score - 0.05 * abs(q - kv)",
       [](int q, int kv, int) { return std::abs(q - kv) < 40; },
       [](double s, int q, int kv, int) { return s - 0.05 * std::abs(q - kv); }}};
  for (const FlexCase& c : cases) {
    SCOPED_TRACE(c.mask);
    const FlexProgram program = program_of(c.mask, c.score);
    const auto y = to_floats(run(&program), dtype());
    for (int row = 0; row < num_rows(); ++row) {
      expect_near(c, y, row, row < kPromptLen ? kPromptLen : positions_[row] + 1);
    }
  }
}

// Rows of heads see the pages that they were given, expressions the positions in these, and codes
// have the scales of their head.
TEST_P(FlexAttentionTest, RowsOfHeadsKnowThePositionsOfTheirPages) {
  const auto is_chosen = [](int q, int kv, int h) {
    return q / kFlexBlock == kv / kFlexBlock || (kv / kFlexBlock + h / 2) % 3 != 1;
  };
  const size_t rows = positions_.size() * kFlexKvHeads;
  std::vector<int32_t> pages(rows * kFlexBlocks), begins(pages.size()), last(rows, -1);
  for (size_t row = 0; row < rows; ++row) {
    const int q = positions_[row / kFlexKvHeads], kv_head = static_cast<int>(row % kFlexKvHeads);
    size_t next = row * kFlexBlocks;
    for (int kv = 0; kv <= q; kv += kFlexBlock) {
      if (!is_chosen(q, kv, kv_head * 2)) continue;
      pages[next] = table_[kv / kFlexBlock] * kFlexKvHeads + kv_head;
      begins[next++] = kv;
      last[row] += std::min(kFlexBlock, q + 1 - kv);
    }
  }
  std::vector<int32_t> tables(rows);
  std::iota(tables.begin(), tables.end(), 0);
  args_.of_heads = {kFlexKvHeads, args_.positions, to_device(begins)};
  args_.counts = counts(static_cast<int>(rows));
  args_.max_rows = static_cast<int>(rows);
  args_.num_heads = kFlexHeads / kFlexKvHeads;
  args_.positions = to_device(last);
  args_.row_slot = to_device(tables);
  args_.block_tables = to_device(pages);
  args_.kv.num_kv_heads = 1;
  if (format() == KvFormat::kFp8) {
    key_scales_ = {0.5f, 1.25f};
    value_scales_ = {1.25f, 0.5f};
    args_.kv.k_scales = to_device(key_scales_);
    args_.kv.v_scales = to_device(value_scales_);
  }
  const auto expect_cases = [&](const FlexCase& c, const FlexProgram* program) {
    SCOPED_TRACE(c.mask);
    const auto y = to_floats(run(program), dtype());
    for (int row = 0; row < num_rows(); ++row) expect_near(c, y, row, positions_[row] + 1);
  };
  const FlexCase cases[] = {
      {"kv <= q and q - kv < 100 and (h != 2 or kv % 2 == 0)", "score - 0.02 * (h + 1) * (q - kv)",
       [&](int q, int kv, int h) {
         return is_chosen(q, kv, h) && q - kv < 100 && (h != 2 || kv % 2 == 0);
       },
       [](double s, int q, int kv, int h) { return s - 0.02 * (h + 1) * (q - kv); }},
      {"kv <= q and kv % 7 != 3 and q % 5 != 1", "",
       [&](int q, int kv, int h) { return is_chosen(q, kv, h) && kv % 7 != 3 && q % 5 != 1; },
       as_it_is}};
  for (const FlexCase& c : cases) {
    const FlexProgram program = program_of(c.mask, c.score, true);
    expect_cases(c, &program);
  }
  if (dtype() == DType::kF32 || rounded() > 0) {
    expect_cases({"without", "", is_chosen, as_it_is}, nullptr);
  }
}

// What requests say themselves is run step by step, and has the bits of what is compiled.
TEST_P(FlexAttentionTest, RequestsOwnHaveTheBitsOfTheEngines) {
  FlexProgram asking = program_of("kv <= q and request", "request");
  ASSERT_TRUE(asking.asks_masks && asking.asks_scores);
  for (const FlexCase& c : flex_cases()) {
    SCOPED_TRACE(std::string(c.mask) + " ; " + c.score);
    const FlexProgram own = program_of(c.mask, c.score);
    std::vector<uint32_t> words = pack_flex(c.mask, c.score).value();
    ASSERT_LE(words.size(), size_t{kMaxFlexWords});
    words.resize(kMaxFlexWords);
    asking.of_requests = to_device(words);
    EXPECT_EQ(run(&asking), run(&own));
  }
  // A request that says nothing.
  asking.of_requests = to_device(std::vector<uint32_t>(kMaxFlexWords));
  const FlexProgram causal = program_of("kv <= q", "");
  EXPECT_EQ(run(&asking), run(&causal));
}

// Each row has the words of its slot.
TEST_P(FlexAttentionTest, RequestsOwnAreBySlot) {
  const std::vector<FlexCase> cases = flex_cases();
  const int picks[] = {1, 13, 8};
  FlexProgram asking = program_of("kv <= q and request", "request");
  std::vector<uint32_t> words(3 * kMaxFlexWords);
  std::vector<int32_t> tables, slots;
  for (int slot = 0; slot < 3; ++slot) {
    const FlexCase& c = cases[size_t(picks[slot])];
    const std::vector<uint32_t> one = pack_flex(c.mask, c.score).value();
    std::copy(one.begin(), one.end(), words.begin() + int64_t{slot} * kMaxFlexWords);
    tables.insert(tables.end(), table_.begin(), table_.end());
  }
  for (int row = 0; row < num_rows(); ++row) slots.push_back(row % 3);
  asking.of_requests = to_device(words);
  args_.row_slot = to_device(slots);
  args_.block_tables = to_device(tables);
  const auto together = run(&asking);
  const size_t row_bytes = together.size() / positions_.size();
  for (int slot = 0; slot < 3; ++slot) {
    const FlexCase& c = cases[size_t(picks[slot])];
    const FlexProgram own = program_of(c.mask, c.score);
    const auto want = run(&own);
    for (int row = slot; row < num_rows(); row += 3) {
      EXPECT_EQ(std::memcmp(together.data() + size_t(row) * row_bytes,
                            want.data() + size_t(row) * row_bytes, row_bytes),
                0)
          << row;
    }
  }
}

TEST_P(FlexAttentionTest, WithoutExpressionsItIsThePortableOne) {
  const auto flex = run(nullptr);
  args_.family = AttentionFamily::kPortable;
  EXPECT_EQ(run(nullptr), flex);
}

TEST_P(FlexAttentionTest, RowsAreBitEqualAloneAndTogether) {
  const auto program = program_of("kv <= q and q - kv < 150", "score - 0.05 * (q - kv)");
  const auto together = run(&program);
  const size_t row_bytes = together.size() / positions_.size();
  const auto* q = static_cast<const uint8_t*>(args_.q);
  const std::vector<int32_t> all = positions_;
  for (size_t row = 0; row < all.size(); ++row) {
    args_.counts = counts(1);
    args_.max_rows = 1;
    args_.q = q + row * row_bytes;
    args_.positions = to_device(std::vector<int32_t>{all[row]});
    const auto alone = run(&program);
    EXPECT_EQ(std::memcmp(alone.data(), together.data() + row * row_bytes, row_bytes), 0) << row;
  }
}

// Rows of far contexts, of runs and alone, whether others share their splits or, for want of room,
// each takes all of its own.
TEST_P(FlexAttentionTest, SharedSplitsGiveTheSameBits) {
  constexpr int kEntries = 1200;
  std::vector<int32_t> far(kEntries);
  for (int i = 0; i < kEntries; ++i) far[i] = table_[i % kFlexBlocks];
  table_ = far;
  positions_ = {6143, 6144, 6145, 17000, 40, 41, 42, 43, 44, 45, 46, 47, 48, 19199};
  q_ = typed_data(random_floats(positions_.size() * kFlexHeads * dim(), 5), dtype());
  args_.counts = counts(num_rows());
  args_.q = upload_typed(q_);
  args_.positions = to_device(positions_);
  args_.row_slot = to_device(std::vector<int32_t>(positions_.size(), 0));
  args_.block_tables = to_device(table_);
  args_.max_blocks = kEntries;
  args_.max_rows = num_rows();
  args_.workspace_floats = int64_t{14} * kFlexHeads * 64 * (dim() + 2);
  args_.workspace = allocate<float>(args_.workspace_floats);
  const FlexCase c{"kv <= q and (q - kv < 3000 or kv < 64) and kv % 5 != 0",
                   "score - 0.001 * (q - kv)",
                   [](int q, int kv, int) { return (q - kv < 3000 || kv < 64) && kv % 5 != 0; },
                   [](double s, int q, int kv, int) { return s - 0.001 * (q - kv); }};
  const FlexProgram program = program_of(c.mask, c.score);
  const auto shared = run(&program);
  for (int row = 0; row < num_rows(); ++row) {
    expect_near(c, to_floats(shared, dtype()), row, positions_[row] + 1);
  }
  args_.workspace = nullptr;
  args_.workspace_floats = 0;
  EXPECT_EQ(run(&program), shared);
}

// What a device compiles is held, and found again by others.
TEST_P(FlexAttentionTest, ADeviceHoldsWhatItCompiles) {
  const FlexProgram program = program_of("kv <= q and q - kv < 9", "");
  const auto held = hold_flex(device(), program, dtype(), format());
  ASSERT_TRUE(held.ok()) << held.status().message();
  const auto again = hold_flex(device(), program, dtype(), format());
  EXPECT_EQ(held.value(), again.value());
}

// A device compiles each once while it is in use, and keeps a bounded number.
TEST_P(FlexAttentionTest, ChangingExpressionsKeepMemoryFlat) {
  if (dtype() != DType::kF32) GTEST_SKIP() << "one type is enough";
  const bool compiles = device().type() == DeviceType::kCuda;
  const int programs = compiles ? 80 : 20;
  args_.max_rows = 1;
  args_.positions = to_device(std::vector<int32_t>{60});
  int64_t free_before = 0;
  for (int i = 0; i < programs; ++i) {
    const auto program = parse_flex("kv <= q and q - kv < " + std::to_string(i + 1), "").value();
    args_.flex = &program;
    for (int op = 0; op < 125; ++op) attention(queue(), args_);
    read(static_cast<const uint8_t*>(args_.out), 1);
    if (i == programs / 2) free_before = device().free_memory();
  }
  constexpr int64_t kSlack = 64 << 20;
  if (compiles) {
    EXPECT_GT(device().free_memory(), free_before - kSlack);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, FlexAttentionTest,
                         testing::Values(FlexTypes{DType::kF32, 32}, FlexTypes{DType::kBF16, 32},
                                         FlexTypes{DType::kBF16, 64}, FlexTypes{DType::kBF16, 128},
                                         FlexTypes{DType::kBF16, 256},
                                         FlexTypes{DType::kBF16, 128, KvFormat::kFp8},
                                         FlexTypes{DType::kF32, 32, KvFormat::kInt8},
                                         FlexTypes{DType::kBF16, 64, KvFormat::kInt8}));

}  // namespace
}  // namespace foretoken
