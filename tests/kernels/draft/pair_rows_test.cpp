#include "kernels/draft/pair_rows.h"

#include <cmath>

#include "kernels/rows/rms_norm.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

struct Case {
  DType dtype;
  DType states_dtype;
  bool embed_norm;
  bool states_norm;
  int hidden;
  bool of_halves = false;  // the table
};

constexpr int kVocab = 9, kMaxRows = 5;
constexpr float kEps = 1e-5f;

class PairRowsTest : public RowOpTest, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    RowOpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const Case c = GetParam();
    table_ = typed_data(random_floats(size_t(kVocab) * c.hidden, 1), table_dtype());
    states_ = typed_data(random_floats(size_t(kMaxRows) * c.hidden, 2, 3.0f), c.states_dtype);
    embed_norm_ = random_floats(c.hidden, 3);
    states_norm_ = random_floats(c.hidden, 4);
  }
  static DType table_dtype() { return GetParam().of_halves ? DType::kF16 : GetParam().dtype; }
  RowTable table() { return {upload_typed(table_), table_dtype()}; }
  std::vector<uint8_t> run(const TypedData& states, const std::vector<int32_t>& ids, int rows,
                           float scale, bool states_norm = GetParam().states_norm) {
    const Case c = GetParam();
    const size_t bytes = ids.size() * 2 * c.hidden * dtype_size(c.dtype);
    uint8_t* out = marked(bytes);
    pair_rows(queue(), {counts(rows), to_device(ids), table(), upload_typed(states),
                        c.embed_norm ? to_device(embed_norm_) : nullptr,
                        states_norm ? to_device(states_norm_) : nullptr, out,
                        static_cast<int32_t>(ids.size()), kVocab, c.hidden, scale, kEps,
                        c.states_dtype, c.dtype});
    return read(out, bytes);
  }
  // One half of a row in double precision.
  static std::vector<double> half(const float* x, const std::vector<float>* weight, double scale,
                                  int n) {
    std::vector<double> y(x, x + n);
    double squares = 0;
    for (double& value : y) {
      value *= scale;
      squares += value * value;
    }
    if (weight == nullptr) return y;
    for (int i = 0; i < n; ++i) y[i] *= (*weight)[i] / std::sqrt(squares / n + kEps);
    return y;
  }
  TypedData table_, states_;
  std::vector<float> embed_norm_, states_norm_;
};

TEST_P(PairRowsTest, MatchesDouble) {
  const Case c = GetParam();
  const std::vector<int32_t> ids = {3, -1, kVocab, 8, 1};
  for (const float scale : {1.0f, 22.5f}) {
    const auto bytes = run(states_, ids, 4, scale);
    const auto y = to_floats(bytes, c.dtype);
    for (int r = 0; r < 4; ++r) {
      const int id = ids[r] >= 0 && ids[r] < kVocab ? ids[r] : 0;
      auto want = half(&table_.values[size_t(id) * c.hidden], c.embed_norm ? &embed_norm_ : nullptr,
                       scale, c.hidden);
      const auto state = half(&states_.values[size_t(r) * c.hidden],
                              c.states_norm ? &states_norm_ : nullptr, 1.0, c.hidden);
      want.insert(want.end(), state.begin(), state.end());
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_NEAR(y[r * want.size() + i], want[i],
                    std::abs(want[i]) * storage_error(c.dtype) + 1e-6)
            << "row " << r << " element " << i;
      }
    }
    expect_marked(bytes, size_t(4) * 2 * c.hidden * dtype_size(c.dtype));
  }
}

TEST_P(PairRowsTest, RowsAreBitEqualAloneAndInABatch) {
  const Case c = GetParam();
  const std::vector<int32_t> ids = {3, 0, 7, 8, 1};
  const auto together = run(states_, ids, 5, 2.0f);
  const size_t row_bytes = size_t(2) * c.hidden * dtype_size(c.dtype);
  for (int r = 0; r < 5; ++r) {
    const std::vector<float> row(states_.values.begin() + r * c.hidden,
                                 states_.values.begin() + (r + 1) * c.hidden);
    const auto alone = run(typed_data(row, c.states_dtype), {ids[r]}, 1, 2.0f);
    ASSERT_EQ(std::memcmp(alone.data(), &together[r * row_bytes], row_bytes), 0) << r;
  }
}

// The norm is the rms_norm op's, bit for bit.
TEST_P(PairRowsTest, NormsLikeTheNormOp) {
  const Case c = GetParam();
  const auto pairs = run(states_, {0, 1, 2, 3, 4}, 5, 1.0f, true);
  const size_t bytes = size_t(kMaxRows) * c.hidden * dtype_size(c.dtype);
  uint8_t* out = marked(bytes);
  rms_norm(queue(), {counts(kMaxRows), to_device(states_.values), nullptr, to_device(states_norm_),
                     out, nullptr, 0, kMaxRows, c.hidden, kEps, c.dtype});
  const auto normed = read(out, bytes);
  const size_t half_bytes = bytes / kMaxRows;
  for (int r = 0; r < kMaxRows; ++r) {
    ASSERT_EQ(std::memcmp(&normed[r * half_bytes], &pairs[(2 * r + 1) * half_bytes], half_bytes), 0)
        << r;
  }
}

TEST_P(PairRowsTest, HalvesChangePlaces) {
  const Case c = GetParam();
  const std::vector<int32_t> ids = {3, 0, 7};
  const auto usual = run(states_, ids, 3, 2.0f);
  uint8_t* out = marked(usual.size());
  PairRowsArgs args{counts(3),
                    to_device(ids),
                    table(),
                    upload_typed(states_),
                    c.embed_norm ? to_device(embed_norm_) : nullptr,
                    c.states_norm ? to_device(states_norm_) : nullptr,
                    out,
                    3,
                    kVocab,
                    c.hidden,
                    2.0f,
                    kEps,
                    c.states_dtype,
                    c.dtype};
  args.state_first = 1;
  pair_rows(queue(), args);
  const auto changed = read(out, usual.size());
  const size_t half_bytes = c.hidden * dtype_size(c.dtype);
  for (size_t half = 0; half < 2 * ids.size(); ++half) {
    ASSERT_EQ(std::memcmp(&changed[(half ^ 1) * half_bytes], &usual[half * half_bytes], half_bytes),
              0)
        << half;
  }
}

TEST_P(PairRowsTest, GathersStates) {
  const Case c = GetParam();
  const std::vector<int32_t> ids = {3, 1, 8}, from = {4, 0, 4};
  const size_t bytes = ids.size() * 2 * c.hidden * dtype_size(c.dtype);
  uint8_t* out = marked(bytes);
  PairRowsArgs args{counts(3),
                    to_device(ids),
                    table(),
                    upload_typed(states_),
                    to_device(embed_norm_),
                    to_device(states_norm_),
                    out,
                    3,
                    kVocab,
                    c.hidden,
                    1.0f,
                    kEps,
                    c.states_dtype,
                    c.dtype,
                    to_device(from)};
  pair_rows(queue(), args);
  const auto got = read(out, bytes);
  for (size_t r = 0; r < ids.size(); ++r) {
    const size_t row_bytes = c.hidden * dtype_size(c.states_dtype);
    const auto* row = static_cast<const uint8_t*>(args.states) + from[r] * row_bytes;
    uint8_t* one = marked(bytes);
    PairRowsArgs alone = args;
    alone.counts = counts(1);
    alone.token_ids = args.token_ids + r;
    alone.states = row;
    alone.out = one;
    alone.max_rows = 1;
    alone.from = nullptr;
    pair_rows(queue(), alone);
    const size_t size = bytes / ids.size();
    ASSERT_EQ(std::memcmp(read(one, size).data(), got.data() + r * size, size), 0) << r;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, PairRowsTest,
                         testing::Values(Case{DType::kF32, DType::kF32, false, false, 37},
                                         Case{DType::kF32, DType::kBF16, true, false, 64},
                                         Case{DType::kBF16, DType::kF32, false, true, 256},
                                         Case{DType::kBF16, DType::kBF16, true, true, 100},
                                         Case{DType::kBF16, DType::kF32, true, true, 4096},
                                         Case{DType::kF32, DType::kF32, true, true, 515},
                                         Case{DType::kF32, DType::kBF16, true, false, 37, true},
                                         Case{DType::kF32, DType::kF32, false, true, 64, true}));

}  // namespace
}  // namespace foretoken
