#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "kernels/attention/attention.h"
#include "support/fp8_data.h"
#include "support/int8_data.h"
#include "support/row_ops.h"

// AttentionArgs::last_seen and distance_bias: rows of whole texts that see later ones.
namespace foretoken {
namespace {

struct TextHeads {
  int num_heads;
  int num_kv_heads;
  int head_dim;
  int window;
  DType dtype;
  bool slopes = false;
  bool biases = false;
  KvFormat format = KvFormat::kPlain;
};

constexpr int kTextBlock = 16, kTextBlocks = 20, kTexts = 3;
constexpr int kLengths[kTexts] = {300, 3, 41};

class BothWaysAttention : public RowOpTest, public testing::WithParamInterface<TextHeads> {
 protected:
  void SetUp() override {
    RowOpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const TextHeads c = GetParam();
    kv_ = {nullptr, nullptr, c.num_kv_heads, kTextBlock, c.head_dim, c.dtype, c.format};
    tables_.resize(size_t{kTexts} * kTextBlocks);
    std::iota(tables_.begin(), tables_.end(), 1);
    std::shuffle(tables_.begin(), tables_.end(), std::mt19937(3));
    k_ = entries(1);
    v_ = entries(2);
    kv_.k = upload_typed(k_);
    kv_.v = upload_typed(v_);
    if (c.format != KvFormat::kFp8) return;
    kv_.k_scales = to_device(scales());
    kv_.v_scales = to_device(scales());
  }

  static std::vector<float> scales() {
    return std::vector<float>(static_cast<size_t>(GetParam().num_kv_heads), 0.02f);
  }
  TypedData entries(uint64_t seed) const {
    const TextHeads c = GetParam();
    const size_t count = (1 + tables_.size()) * c.num_kv_heads * kTextBlock * c.head_dim;
    const std::vector<float> values = random_floats(count, seed);
    if (c.format == KvFormat::kInt8) return int8_data(values, size_t(c.head_dim));
    if (c.format == KvFormat::kFp8) return fp8_data(values, kv_, scales().data());
    return typed_data(values, c.dtype);
  }

  static float slope(int head) { return GetParam().slopes ? 0.5f / float(head + 1) : 0.0f; }
  // Grows with the head, and differs between keys before a row and behind it.
  static std::vector<float> biases() {
    if (!GetParam().biases) return {};
    return random_floats(size_t(GetParam().num_heads) * kDistances, 5);
  }

  // Attention of the rows of some texts, which stand at the same places of `q` as in all.
  std::vector<uint8_t> run(const std::vector<int>& texts, const TypedData& q, int max_rows,
                           AttentionFamily family = AttentionFamily::kFlash) {
    const TextHeads c = GetParam();
    std::vector<int32_t> positions, slots, last;
    for (const int text : texts) {
      for (int p = 0; p < kLengths[text]; ++p) {
        positions.push_back(p);
        slots.push_back(text);
        last.push_back(kLengths[text] - 1);
      }
    }
    const auto rows = static_cast<int>(positions.size());
    for (auto* list : {&positions, &slots, &last}) list->resize(static_cast<size_t>(max_rows));
    const int64_t floats = 1 << 22;
    AttentionArgs args{counts(rows),
                       upload_typed(q),
                       marked(q.bytes.size()),
                       to_device(positions),
                       to_device(slots),
                       to_device(tables_),
                       allocate<float>(floats),
                       floats,
                       allocate<uint32_t>(size_t(max_rows) * c.num_heads),
                       kv_,
                       kTextBlocks,
                       max_rows,
                       c.num_heads,
                       c.window,
                       scale()};
    args.last_seen = to_device(last);
    args.family = family;
    std::vector<float> slopes;
    for (int h = 0; h < c.num_heads; ++h) slopes.push_back(slope(h));
    if (c.slopes) args.slopes = to_device(slopes);
    if (c.biases) args.distance_bias = to_device(biases());
    attention(queue(), args);
    return read(static_cast<const uint8_t*>(args.out), q.bytes.size());
  }

  static float scale() { return 1.0f / std::sqrt(float(GetParam().head_dim)); }

  std::vector<double> reference(const float* q, int head, int text, int position) const {
    const TextHeads c = GetParam();
    const int kv_head = head / (c.num_heads / c.num_kv_heads), end = kLengths[text];
    const std::vector<float> bias = biases();
    std::vector<double> out(static_cast<size_t>(c.head_dim), 0.0);
    double sum = 0;
    for (int p = 0; p < end; ++p) {
      if (c.window > 0 && std::abs(p - position) >= c.window) continue;
      const size_t block = tables_[size_t(text) * kTextBlocks + p / kTextBlock];
      const size_t at =
          ((block * c.num_kv_heads + kv_head) * kTextBlock + p % kTextBlock) * c.head_dim;
      double score = 0;
      for (int d = 0; d < c.head_dim; ++d) score += double(q[d]) * k_.values[at + d];
      score = score * scale() - double(slope(head)) * std::abs(p - position);
      if (c.biases) score += bias[size_t(head) * kDistances + bias_index(p - position)];
      const double weight = std::exp(score);
      sum += weight;
      for (int d = 0; d < c.head_dim; ++d) out[d] += weight * v_.values[at + d];
    }
    for (double& x : out) x /= sum;
    return out;
  }

  static size_t row_size() { return size_t(GetParam().num_heads) * GetParam().head_dim; }

  TypedData k_, v_;
  std::vector<int32_t> tables_;
  KvLayer kv_{};
};

TEST_P(BothWaysAttention, MatchesDouble) {
  const TextHeads c = GetParam();
  const int rows = kLengths[0] + kLengths[1] + kLengths[2], max_rows = rows + 9;
  const TypedData q = typed_data(random_floats(size_t(max_rows) * row_size(), 4), c.dtype);
  const auto bytes = run({0, 1, 2}, q, max_rows);
  const auto y = to_floats(bytes, c.dtype);
  const bool integers = c.format == KvFormat::kInt8;
  const double weights_error =
      c.dtype == DType::kBF16 ? (integers ? 8e-3 : 3e-3) : (integers ? 2e-4 : 2e-5);
  int row = 0;
  for (int text = 0; text < kTexts; ++text) {
    for (int p = 0; p < kLengths[text]; ++p, ++row) {
      for (int h = 0; h < c.num_heads; ++h) {
        const size_t at = size_t(row) * row_size() + size_t(h) * c.head_dim;
        const auto want = reference(&q.values[at], h, text, p);
        for (int d = 0; d < c.head_dim; ++d) {
          const double bound = std::abs(want[d]) * storage_error(c.dtype) + weights_error;
          ASSERT_NEAR(y[at + d], want[d], bound)
              << "text " << text << " row " << p << " head " << h;
        }
      }
    }
  }
  expect_marked(bytes, size_t(rows) * row_size() * dtype_size(c.dtype));
}

// Whatever else a step has, and whichever kernels it takes.
TEST_P(BothWaysAttention, RowsAreBitEqualAloneAndInABatch) {
  const TextHeads c = GetParam();
  const int rows = kLengths[0] + kLengths[1] + kLengths[2];
  const auto values = random_floats(size_t(rows) * row_size(), 6);
  const TypedData q = typed_data(values, c.dtype);
  const auto together = run({0, 1, 2}, q, rows);
  EXPECT_EQ(run({0, 1, 2}, q, rows, AttentionFamily::kPortable), together);
  size_t first = 0;
  for (int text = 0; text < kTexts; ++text) {
    const size_t size = size_t(kLengths[text]) * row_size();
    const std::vector<float> own(values.begin() + first, values.begin() + first + size);
    const auto alone = run({text}, typed_data(own, c.dtype), kLengths[text]);
    const size_t bytes = dtype_size(c.dtype);
    EXPECT_EQ(std::memcmp(alone.data(), together.data() + first * bytes, size * bytes), 0) << text;
    first += size;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, BothWaysAttention,
    testing::Values(TextHeads{2, 2, 16, 0, DType::kF32}, TextHeads{2, 2, 64, 0, DType::kBF16},
                    TextHeads{2, 1, 64, 5, DType::kF32}, TextHeads{2, 2, 64, 65, DType::kBF16},
                    TextHeads{4, 1, 256, 33, DType::kBF16}, TextHeads{2, 2, 64, 1, DType::kBF16},
                    TextHeads{2, 1, 128, 257, DType::kBF16}, TextHeads{2, 1, 72, 7, DType::kF32},
                    TextHeads{2, 2, 128, 50, DType::kF32}, TextHeads{2, 1, 256, 33, DType::kF32},
                    TextHeads{3, 3, 24, 0, DType::kF32, true},
                    TextHeads{2, 2, 64, 0, DType::kBF16, true},
                    TextHeads{2, 2, 32, 0, DType::kF32, false, true},
                    TextHeads{2, 2, 64, 0, DType::kBF16, false, true},
                    TextHeads{2, 1, 64, 40, DType::kF32, true, true, KvFormat::kFp8},
                    TextHeads{2, 2, 64, 70, DType::kBF16, false, false, KvFormat::kFp8},
                    TextHeads{2, 1, 64, 20, DType::kF32, true, true, KvFormat::kInt8},
                    TextHeads{2, 2, 64, 0, DType::kBF16, false, false, KvFormat::kInt8}));

}  // namespace
}  // namespace foretoken
