#include "kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "support/fp8_data.h"
#include "support/int8_data.h"
#include "support/latent_data.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

struct Case {
  int num_heads;
  int num_kv_heads;
  int head_dim;
  int window;
  DType dtype;
  float softcap = 0;
  int kv_begin = 0;
  KvFormat format = KvFormat::kPlain;
  int chunk = 0;
  int value_dim = 0;  // as of KvLayer
  bool sinks = false;
  bool slopes = false;

  int value_size() const { return value_dim > 0 ? value_dim : head_dim; }
};

constexpr int kBlockSize = 16, kMaxBlocks = 80, kAttentionSlots = 2,
              kNumBlocks = 1 + kAttentionSlots * kMaxBlocks;

class AttentionTest : public RowOpTest, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    RowOpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const Case c = GetParam();
    kv_ = {nullptr,    nullptr, c.num_kv_heads, kBlockSize,
           c.head_dim, c.dtype, c.format,       c.value_dim};
    k_ = entries(1, key_scales());
    v_ = c.value_dim > 0 ? k_ : entries(2, value_scales());
    tables_.assign((kAttentionSlots + 1) * kMaxBlocks, 0);
    std::iota(tables_.begin(), tables_.begin() + kAttentionSlots * kMaxBlocks, 1);
    std::shuffle(tables_.begin(), tables_.begin() + kAttentionSlots * kMaxBlocks, std::mt19937(3));
    kv_.k = upload_typed(k_);
    kv_.v = c.value_dim > 0 ? kv_.k : upload_typed(v_);
    if (c.format != KvFormat::kFp8 || c.value_dim > 0) return;
    kv_.k_scales = to_device(key_scales());
    kv_.v_scales = to_device(value_scales());
  }

  // Of each KV head.
  static std::vector<float> key_scales() { return scales_from(0.3f); }
  static std::vector<float> value_scales() { return scales_from(0.011f); }
  static std::vector<float> scales_from(float first) {
    std::vector<float> scales;
    for (int h = 0; h < GetParam().num_kv_heads; ++h) {
      scales.push_back(first * static_cast<float>(h + 1));
    }
    return scales;
  }

  TypedData entries(uint64_t seed, const std::vector<float>& scales) const {
    const Case c = GetParam();
    const size_t count = size_t(kNumBlocks) * c.num_kv_heads * kBlockSize * c.head_dim;
    const std::vector<float> values = random_floats(count, seed);
    switch (c.format) {
      case KvFormat::kInt8:
        return c.value_dim > 0 ? latent_data(values, kv_) : int8_data(values, size_t(c.head_dim));
      case KvFormat::kFp8:
        return fp8_data(values, kv_, scales.data());
      case KvFormat::kPlain:
        break;
    }
    return typed_data(values, c.dtype);
  }

  // The tables with ids that no memory has wherever none of the rows sees a position.
  std::vector<int32_t> visible_tables(const std::vector<int32_t>& positions,
                                      const std::vector<int32_t>& slots, int rows) const {
    std::vector<int32_t> tables(tables_.size(), std::numeric_limits<int32_t>::max());
    for (int r = 0; r < rows; ++r) {
      const int row = slots[r] * kMaxBlocks;
      for (int b = first_visible(positions[r]) / kBlockSize; b <= positions[r] / kBlockSize; ++b) {
        tables[row + b] = tables_[row + b];
      }
    }
    return tables;
  }

  static int first_visible(int position) {
    const int window = GetParam().window;
    const int begin = std::min(GetParam().kv_begin, position);
    const int chunk = GetParam().chunk;
    const int of_chunk = chunk > 0 ? position / chunk * chunk : 0;
    return std::max(of_chunk, window > 0 ? std::max(begin, position + 1 - window) : begin);
  }

  AttentionArgs args_of(const TypedData& q, const std::vector<int32_t>& positions,
                        const std::vector<int32_t>& slots, int rows, bool workspace = true) {
    const Case c = GetParam();
    const int max_rows = static_cast<int>(positions.size());
    const int64_t floats = workspace ? 1 << 22 : 0;
    AttentionArgs args{counts(rows),
                       upload_typed(q),
                       marked(out_bytes(q)),
                       to_device(positions),
                       to_device(slots),
                       to_device(visible_tables(positions, slots, rows)),
                       allocate<float>(floats),
                       floats,
                       workspace ? allocate<uint32_t>(size_t(max_rows) * c.num_heads) : nullptr,
                       kv_,
                       kMaxBlocks,
                       max_rows,
                       c.num_heads,
                       c.window,
                       scale(),
                       c.softcap,
                       c.kv_begin};
    args.chunk = c.chunk;
    if (c.sinks) args.sinks = to_device(sinks());
    if (c.slopes) {
      std::vector<float> slopes;
      for (int h = 0; h < c.num_heads; ++h) slopes.push_back(slope(h));
      args.slopes = to_device(slopes);
    }
    return args;
  }

  std::vector<uint8_t> run(const AttentionArgs& args, size_t bytes) {
    attention(queue(), args);
    return read(static_cast<const uint8_t*>(args.out), bytes);
  }
  std::vector<uint8_t> run(const TypedData& q, const std::vector<int32_t>& positions,
                           const std::vector<int32_t>& slots, int rows, bool workspace = true) {
    return run(args_of(q, positions, slots, rows, workspace), out_bytes(q));
  }
  static size_t out_bytes(const TypedData& q) {
    return q.bytes.size() / GetParam().head_dim * GetParam().value_size();
  }

  // Far below all scores, among them and far above, where hardly anything is left.
  static std::vector<float> sinks() {
    std::vector<float> all;
    for (int h = 0; h < GetParam().num_heads; ++h) all.push_back(h % 4 == 3 ? 40.0f : 5.0f * h - 7);
    return all;
  }

  // As of ALiBi, and one head without.
  static float slope(int head) {
    if (!GetParam().slopes || head == 2) return 0;
    return std::exp2(-8.0f * float(head + 1) / float(GetParam().num_heads));
  }

  float scale() const { return 1.0f / std::sqrt(float(GetParam().head_dim)); }

  std::vector<double> reference(const float* q, int head, int slot, int position) const {
    const Case c = GetParam();
    const int kv_head = head / (c.num_heads / c.num_kv_heads);
    std::vector<double> out(c.value_size(), 0.0);
    double sum = 0;
    for (int p = first_visible(position); p <= position; ++p) {
      const size_t block = tables_[slot * kMaxBlocks + p / kBlockSize];
      const size_t at =
          ((block * c.num_kv_heads + kv_head) * kBlockSize + p % kBlockSize) * c.head_dim;
      double score = 0;
      for (int d = 0; d < c.head_dim; ++d) score += double(q[d]) * k_.values[at + d];
      score *= scale();
      if (c.softcap > 0) score = c.softcap * std::tanh(score / c.softcap);
      score += double(slope(head)) * (p - position);
      const double weight = std::exp(score);
      sum += weight;
      for (int d = 0; d < c.value_size(); ++d) out[d] += weight * v_.values[at + d];
    }
    if (c.sinks) sum += std::exp(double(sinks()[head]));
    for (double& x : out) x /= sum;
    return out;
  }

  TypedData k_, v_;
  std::vector<int32_t> tables_;
  KvLayer kv_{};
};

TEST_P(AttentionTest, MatchesDouble) {
  const Case c = GetParam();
  const std::vector<int32_t> positions = {0, 1, 15, 16, 255, 256, 300, 511, 1279, 700, 9};
  const std::vector<int32_t> slots = {0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 2};
  const int rows = 10, width = c.num_heads * c.head_dim;
  const TypedData q = typed_data(random_floats(positions.size() * width, 4), c.dtype);
  const auto bytes = run(q, positions, slots, rows);
  const auto y = to_floats(bytes, c.dtype);
  for (int r = 0; r < rows; ++r) {
    for (int h = 0; h < c.num_heads; ++h) {
      const size_t at = (size_t(r) * c.num_heads + h) * c.value_size();
      const auto want = reference(&q.values[r * width + h * c.head_dim], h, slots[r], positions[r]);
      for (int d = 0; d < c.value_size(); ++d) {
        // Tensor cores take the softmax weights in bfloat16 too: 2^-9 of sum(w |v|). Queries of 16
        // bits move scores by about 1e-5. Among the elements of latents are larger ones. The
        // highest weight is exact, but not times the scale of an entry: of few keys that is 2^-9
        // |v|.
        const bool integers = c.format == KvFormat::kInt8;
        const double weights_error = c.dtype != DType::kBF16 ? (integers ? 2e-4 : 2e-5)
                                     : c.value_dim > 0       ? 6e-3
                                     : integers              ? 8e-3
                                                             : 3e-3;
        const double bound = std::abs(want[d]) * storage_error(c.dtype) + weights_error;
        ASSERT_NEAR(y[at + d], want[d], bound) << "row " << r << " head " << h;
      }
    }
  }
  expect_marked(bytes, size_t(rows) * c.num_heads * c.value_size() * dtype_size(c.dtype));
}

TEST_P(AttentionTest, RowsAreBitEqualAloneAndInABatch) {
  const Case c = GetParam();
  const size_t width = size_t(c.num_heads) * c.head_dim;
  const std::vector<int32_t> positions = {3, 600, 601, 602, 255, 256, 17};
  const std::vector<int32_t> slots = {0, 1, 1, 1, 0, 0, 1};
  const auto values = random_floats(positions.size() * width, 5);
  const size_t row_bytes = size_t(c.num_heads) * c.value_size() * dtype_size(c.dtype);
  const auto together = run(typed_data(values, c.dtype), positions, slots, 7);
  for (size_t r = 0; r < positions.size(); ++r) {
    const std::vector<float> row(values.begin() + r * width, values.begin() + (r + 1) * width);
    const auto alone = run(typed_data(row, c.dtype), {positions[r]}, {slots[r]}, 1);
    ASSERT_EQ(std::memcmp(alone.data(), together.data() + r * row_bytes, row_bytes), 0) << r;
  }
}

// All families but those of libraries: decoding, drafts that are verified, and prompts.
TEST_P(AttentionTest, FamiliesHaveTheSameBits) {
  const Case c = GetParam();
  const size_t width = size_t(c.num_heads) * c.head_dim;
  for (const int rows : {1, 4, 40}) {
    std::vector<int32_t> positions(static_cast<size_t>(rows)), slots(positions.size(), 1);
    std::iota(positions.begin(), positions.end(), 700);
    const TypedData q = typed_data(random_floats(positions.size() * width, 10), c.dtype);
    AttentionArgs args = args_of(q, positions, slots, rows);
    const auto best = run(args, out_bytes(q));
    for (const AttentionFamily family : {AttentionFamily::kPortable, AttentionFamily::kFlex}) {
      args.family = family;
      args.out = marked(out_bytes(q));
      EXPECT_EQ(run(args, out_bytes(q)), best) << attention_family_name(family) << rows << " rows";
    }
  }
}

// As in layer after layer: the same rows, other keys and values.
TEST_P(AttentionTest, RepeatsHaveTheSameBits) {
  const size_t width = size_t(GetParam().num_heads) * GetParam().head_dim;
  for (const int rows : {0, 1, 4, 31, 40, 300}) {
    std::vector<int32_t> positions(static_cast<size_t>(std::max(rows, 1)));
    std::vector<int32_t> slots(positions.size());
    for (size_t r = 0; r < positions.size(); ++r) {  // runs of three, far and near by turns
      slots[r] = static_cast<int32_t>(r / 3 % 2);
      positions[r] = static_cast<int32_t>(r % 3 + r / 3 * 31 % 400 + (slots[r] == 0 ? 850 : 0));
    }
    const TypedData q = typed_data(random_floats(positions.size() * width, 8), GetParam().dtype);
    AttentionArgs args = args_of(q, positions, slots, rows);
    std::swap(args.kv.k, args.kv.v);
    run(args, out_bytes(q));
    args.kv = kv_;
    args.repeats = true;
    args.out = marked(out_bytes(q));
    EXPECT_EQ(run(args, out_bytes(q)), run(q, positions, slots, rows)) << rows << " rows";
  }
}

// The bucket, the neighbours in the span and the workspace choose kernels and schedules, not bits.
TEST_P(AttentionTest, RowsAreBitEqualInLongSpansAndLargeBuckets) {
  const Case c = GetParam();
  constexpr int kLive = 24, kBucket = 140;
  const size_t width = size_t(c.num_heads) * c.head_dim;
  const size_t row_bytes = size_t(c.num_heads) * c.value_size() * dtype_size(c.dtype);
  auto values = random_floats(kBucket * width, 6);
  std::vector<int32_t> positions(kBucket, 0), slots(kBucket, kAttentionSlots);
  for (int r = 0; r < kLive; ++r) {
    positions[r] = 500 + r;
    slots[r] = 1;
  }
  const auto span = run(typed_data(values, c.dtype), positions, slots, kLive);
  const auto direct = run(typed_data(values, c.dtype), positions, slots, kLive, false);
  ASSERT_EQ(std::memcmp(span.data(), direct.data(), kLive * row_bytes), 0);
  for (const int r : {0, 1, 11, 12, 13, 23}) {
    const std::vector<float> row(values.begin() + r * width, values.begin() + (r + 1) * width);
    const auto alone = run(typed_data(row, c.dtype), {positions[r]}, {1}, 1, r % 2 == 0);
    ASSERT_EQ(std::memcmp(alone.data(), span.data() + r * row_bytes, row_bytes), 0) << r;
  }
}

class ManyRowsTest : public AttentionTest {};

// A prompt whole, in chunks, and row after row.
TEST_P(ManyRowsTest, UpTo512RowsHaveTheBitsOfOne) {
  constexpr int kRows = 512, kFirst = 90;
  const Case c = GetParam();
  const size_t width = size_t(c.num_heads) * c.head_dim;
  const size_t row_bytes = size_t(c.num_heads) * c.value_size() * dtype_size(c.dtype);
  const auto values = random_floats(kRows * width, 9);
  const auto part = [&](int first, int count) {
    std::vector<int32_t> positions(static_cast<size_t>(count));
    std::iota(positions.begin(), positions.end(), kFirst + first);
    const std::vector<float> rows(values.begin() + first * width,
                                  values.begin() + (first + count) * width);
    const std::vector<int32_t> slots(positions.size(), 1);
    return run(typed_data(rows, c.dtype), positions, slots, count);
  };
  const auto all = part(0, kRows);
  for (const int count : {1, 2, 3, 16, 63, 129, 300}) {
    for (const int first : {0, 7, kRows - count}) {
      const auto some = part(first, count);
      ASSERT_EQ(std::memcmp(some.data(), all.data() + first * row_bytes, count * row_bytes), 0)
          << count << " rows from " << first;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fp8, ManyRowsTest,
                         testing::Values(Case{2, 1, 64, 0, DType::kF32, 0, 0, KvFormat::kFp8},
                                         Case{4, 2, 64, 0, DType::kBF16, 0, 0, KvFormat::kFp8},
                                         Case{2, 1, 128, 0, DType::kBF16, 0, 0, KvFormat::kFp8},
                                         Case{3, 1, 40, 200, DType::kBF16, 0, 0, KvFormat::kFp8},
                                         Case{2, 1, 160, 0, DType::kBF16, 0, 0, KvFormat::kFp8, 0,
                                              128}));

INSTANTIATE_TEST_SUITE_P(Int8, ManyRowsTest,
                         testing::Values(Case{4, 2, 64, 0, DType::kBF16, 0, 0, KvFormat::kInt8},
                                         Case{2, 1, 128, 0, DType::kBF16, 0, 0, KvFormat::kInt8},
                                         Case{3, 1, 256, 0, DType::kBF16, 0, 0, KvFormat::kInt8},
                                         Case{3, 1, 40, 200, DType::kBF16, 0, 0, KvFormat::kInt8}));

// Heads whose entries are no whole words of the copy, and the sizes of the tensor cores.
INSTANTIATE_TEST_SUITE_P(
    Int8, AttentionTest,
    testing::Values(Case{8, 2, 80, 0, DType::kBF16, 0, 17, KvFormat::kInt8, 0, 0, true},
                    Case{4, 2, 96, 300, DType::kBF16, 0, 0, KvFormat::kInt8},
                    Case{4, 2, 112, 0, DType::kBF16, 0, 0, KvFormat::kInt8},
                    Case{4, 2, 192, 100, DType::kBF16, 2.0f, 0, KvFormat::kInt8},
                    Case{12, 1, 128, 300, DType::kBF16, 0, 1, KvFormat::kInt8, 330},
                    Case{3, 1, 22, 40, DType::kBF16, 0, 0, KvFormat::kInt8}));

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionTest,
    testing::Values(
        Case{4, 2, 16, 0, DType::kF32}, Case{3, 3, 64, 0, DType::kF32},
        Case{9, 3, 64, 300, DType::kF32}, Case{8, 2, 128, 0, DType::kBF16},
        Case{16, 1, 32, 40, DType::kBF16}, Case{12, 1, 256, 0, DType::kBF16},
        Case{4, 2, 80, 0, DType::kF32}, Case{4, 2, 80, 260, DType::kBF16},
        Case{3, 1, 96, 0, DType::kBF16}, Case{4, 4, 96, 512, DType::kF32},
        Case{4, 2, 192, 100, DType::kBF16}, Case{2, 1, 192, 0, DType::kF32},
        Case{5, 1, 72, 0, DType::kF32}, Case{2, 1, 104, 33, DType::kBF16},
        Case{4, 2, 112, 0, DType::kBF16}, Case{2, 1, 512, 0, DType::kF32},
        Case{2, 1, 512, 270, DType::kBF16}, Case{8, 4, 256, 1, DType::kBF16},
        Case{8, 4, 256, 300, DType::kBF16, 50.0f}, Case{4, 4, 256, 0, DType::kF32, 2.0f},
        Case{8, 2, 128, 0, DType::kBF16, 1.0f}, Case{4, 2, 64, 257, DType::kF32, 1.5f},
        Case{4, 2, 64, 256, DType::kBF16, 30.0f},
        // Positions that do not exist: few, a block and more, inside the second split.
        Case{4, 2, 64, 0, DType::kF32, 0, 1}, Case{8, 2, 128, 0, DType::kBF16, 0, 2},
        Case{4, 2, 16, 40, DType::kF32, 0, 1}, Case{6, 2, 80, 0, DType::kBF16, 0, 17},
        Case{4, 2, 64, 300, DType::kF32, 0, 290}, Case{4, 1, 64, 0, DType::kBF16, 30.0f, 290},
        Case{4, 2, 64, 0, DType::kF32, 0, 5000},
        Case{4, 2, 64, 0, DType::kF32, 0, 0, KvFormat::kInt8},
        Case{8, 2, 128, 0, DType::kBF16, 0, 0, KvFormat::kInt8},
        Case{9, 3, 80, 300, DType::kF32, 0, 0, KvFormat::kInt8},
        Case{3, 1, 20, 40, DType::kBF16, 0, 0, KvFormat::kInt8},
        Case{7, 1, 256, 257, DType::kBF16, 30.0f, 0, KvFormat::kInt8},
        Case{2, 1, 512, 0, DType::kF32, 2.0f, 0, KvFormat::kInt8},
        Case{4, 2, 64, 300, DType::kF32, 0, 290, KvFormat::kInt8},
        Case{96, 1, 64, 0, DType::kBF16, 0, 17, KvFormat::kInt8},
        Case{4, 2, 64, 0, DType::kF32, 0, 0, KvFormat::kPlain, 100},
        Case{8, 2, 128, 0, DType::kBF16, 0, 0, KvFormat::kPlain, 256},
        Case{8, 2, 128, 300, DType::kBF16, 0, 0, KvFormat::kPlain, 330},
        Case{4, 2, 64, 0, DType::kF32, 0, 0, KvFormat::kInt8, 100},
        // Latents: values are the front of keys.
        Case{4, 1, 48, 0, DType::kF32, 0, 0, KvFormat::kPlain, 0, 32},
        Case{9, 1, 576, 0, DType::kF32, 0, 1, KvFormat::kPlain, 0, 512},
        Case{16, 1, 576, 0, DType::kBF16, 0, 0, KvFormat::kPlain, 0, 512},
        Case{5, 1, 576, 300, DType::kBF16, 0, 2, KvFormat::kPlain, 0, 512, true},
        Case{72, 1, 576, 0, DType::kBF16, 0, 0, KvFormat::kPlain, 270, 512},
        Case{130, 1, 64, 0, DType::kBF16, 0, 2, KvFormat::kPlain, 0, 32},
        Case{3, 1, 576, 0, DType::kF32, 0, 1, KvFormat::kInt8, 0, 512},
        Case{6, 1, 576, 300, DType::kBF16, 0, 0, KvFormat::kInt8, 0, 512},
        Case{4, 1, 56, 40, DType::kBF16, 0, 0, KvFormat::kInt8, 0, 38},
        Case{4, 1, 128, 40, DType::kBF16, 0, 0, KvFormat::kPlain, 0, 64},
        Case{4, 1, 48, 0, DType::kBF16, 0, 0, KvFormat::kPlain, 0, 32},
        Case{8, 2, 64, 0, DType::kF32, 0, 0, KvFormat::kPlain, 0, 0, true},
        Case{8, 1, 64, 128, DType::kBF16, 0, 0, KvFormat::kPlain, 0, 0, true},
        Case{8, 2, 80, 0, DType::kBF16, 2.0f, 1, KvFormat::kPlain, 0, 0, true},
        Case{8, 2, 64, 128, DType::kF32, 0, 0, KvFormat::kInt8, 0, 0, true},
        Case{6, 1, 64, 0, DType::kBF16, 0, 0, KvFormat::kInt8, 0, 0, true},
        // ALiBi.
        Case{5, 5, 24, 0, DType::kF32, 0, 0, KvFormat::kPlain, 0, 0, false, true},
        Case{12, 1, 64, 0, DType::kBF16, 0, 2, KvFormat::kPlain, 0, 0, false, true},
        Case{8, 4, 128, 300, DType::kBF16, 9.0f, 0, KvFormat::kPlain, 0, 0, false, true},
        Case{6, 2, 80, 0, DType::kBF16, 0, 0, KvFormat::kPlain, 100, 0, false, true},
        Case{8, 4, 64, 0, DType::kF32, 0, 0, KvFormat::kInt8, 0, 0, false, true},
        Case{20, 1, 128, 270, DType::kBF16, 7.0f, 0, KvFormat::kInt8, 0, 0, false, true}));

INSTANTIATE_TEST_SUITE_P(
    Fp8, AttentionTest,
    testing::Values(Case{4, 2, 64, 0, DType::kF32, 0, 0, KvFormat::kFp8},
                    Case{8, 2, 128, 0, DType::kBF16, 0, 0, KvFormat::kFp8},
                    Case{9, 3, 80, 300, DType::kF32, 0, 0, KvFormat::kFp8},
                    Case{3, 1, 20, 40, DType::kBF16, 0, 0, KvFormat::kFp8},
                    Case{6, 2, 64, 257, DType::kBF16, 30.0f, 290, KvFormat::kFp8},
                    Case{8, 2, 64, 0, DType::kBF16, 0, 0, KvFormat::kFp8, 100},
                    Case{12, 1, 128, 300, DType::kBF16, 2.0f, 1, KvFormat::kFp8},
                    Case{6, 2, 80, 0, DType::kBF16, 0, 17, KvFormat::kFp8, 0, 0, true},
                    Case{2, 1, 192, 100, DType::kBF16, 0, 0, KvFormat::kFp8},
                    // Latents.
                    Case{3, 1, 576, 0, DType::kF32, 0, 1, KvFormat::kFp8, 0, 512},
                    Case{6, 1, 576, 0, DType::kBF16, 0, 0, KvFormat::kFp8, 0, 512},
                    Case{4, 1, 56, 40, DType::kBF16, 0, 0, KvFormat::kFp8, 0, 38},
                    Case{4, 1, 234, 0, DType::kF32, 0, 0, KvFormat::kFp8, 0, 200},
                    // Sinks, then slopes.
                    Case{8, 2, 64, 128, DType::kBF16, 0, 0, KvFormat::kFp8, 0, 0, true},
                    Case{5, 5, 24, 0, DType::kF32, 0, 0, KvFormat::kFp8, 0, 0, false, true},
                    Case{12, 1, 64, 0, DType::kBF16, 0, 2, KvFormat::kFp8, 0, 0, false, true}));

}  // namespace
}  // namespace foretoken
