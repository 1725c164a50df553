#include "kernels/experts/combine_experts.h"

#include <cmath>

#include "kernels/op_cost.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

struct Case {
  bool weights, shared, gate, add;
  DType dtype;
};

class CombineExpertsTest : public RowOpTest, public testing::WithParamInterface<Case> {
 protected:
  static constexpr int kRows = 7, kLive = 6, kTop = 3, kHidden = 1100;
  static constexpr int kFirst = 2, kOwn = 4;  // of ids 0 .. 7

  void SetUp() override {
    RowOpTest::SetUp();
    y_ = typed_data(random_floats(kRows * kTop * kHidden, 1), GetParam().dtype);
    weights_ = random_floats(kRows * kTop, 2);
    shared_ = random_floats(kRows * kHidden, 3);
    gate_ = random_floats(kRows, 4);
    out_ = random_floats(kRows * kHidden, 5);
    for (int i = 0; i < kRows * kTop; ++i) ids_.push_back(i * 5 % 8);
  }

  // Of rows [first, first + rows), `live` of them.
  std::vector<float> combine(int first, int rows, int live) {
    const Case c = GetParam();
    const auto part = [&](const auto& all, int of_row) {
      return to_device(
          std::vector(all.begin() + first * of_row, all.begin() + (first + rows) * of_row));
    };
    const int y_row = kTop * kHidden * int(dtype_size(c.dtype));
    float* out = part(out_, kHidden);
    combine_experts(queue(), {.counts = counts(live),
                              .y = part(y_.bytes, y_row),
                              .ids = part(ids_, kTop),
                              .weights = c.weights ? part(weights_, kTop) : nullptr,
                              .shared = c.shared ? part(shared_, kHidden) : nullptr,
                              .shared_gate = c.gate ? part(gate_, 1) : nullptr,
                              .out = out,
                              .first_expert = kFirst,
                              .num_own = kOwn,
                              .top_k = kTop,
                              .max_rows = rows,
                              .hidden = kHidden,
                              .dtype = c.dtype,
                              .add = c.add ? 1 : 0});
    return read(out, size_t(rows) * kHidden);
  }

  TypedData y_;
  std::vector<float> weights_, shared_, gate_, out_;
  std::vector<int32_t> ids_;
};

TEST_P(CombineExpertsTest, MatchesDoubleAndLeavesTheRest) {
  const Case c = GetParam();
  const auto out = combine(0, kRows, kLive);
  for (int r = 0; r < kLive; ++r) {
    for (int i = 0; i < kHidden; ++i) {
      const size_t at = size_t(r) * kHidden + size_t(i);
      double want = c.shared ? shared_[at] : 0;
      if (c.gate) want /= 1 + std::exp(-double(gate_[size_t(r)]));
      for (int slot = 0; slot < kTop; ++slot) {
        const size_t entry = size_t(r * kTop + slot);
        if (ids_[entry] < kFirst || ids_[entry] >= kFirst + kOwn) continue;
        want += double(c.weights ? weights_[entry] : 1) * y_.values[entry * kHidden + size_t(i)];
      }
      if (c.add) want += out_[at];
      ASSERT_NEAR(out[at], want, 1e-5) << "row " << r << " column " << i;
    }
  }
  for (size_t i = size_t(kLive) * kHidden; i < out.size(); ++i) ASSERT_EQ(out[i], out_[i]);
}

TEST_P(CombineExpertsTest, RowsAreBitEqualAlone) {
  const auto all = combine(0, kRows, kRows);
  for (const int r : {0, 3, kRows - 1}) {
    const auto one = combine(r, 1, 1);
    ASSERT_TRUE(std::equal(one.begin(), one.end(), all.begin() + r * kHidden)) << "row " << r;
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, CombineExpertsTest,
                         testing::Values(Case{true, false, false, false, DType::kF32},
                                         Case{true, true, false, true, DType::kF32},
                                         Case{true, true, true, false, DType::kBF16},
                                         Case{false, true, true, true, DType::kBF16},
                                         Case{false, false, false, false, DType::kBF16}));

TEST(CombineExpertsCost, CountsWhatIsReadAndWritten) {
  CombineExpertsArgs args{};
  const float shared = 0;
  args.shared = &shared;
  args.top_k = 3;
  args.max_rows = 8;
  args.hidden = 64;
  args.dtype = DType::kBF16;
  const OpCost cost = op_cost(Op::kCombineExperts, &args, {.counts = {5, 0, 1, 0}});
  EXPECT_EQ(cost.row_bytes, 5 * 64 * (3 * 2 + 2 * 4) + 5 * 3 * 8);
  EXPECT_EQ(cost.flops, 2 * 5 * 3 * 64);
  EXPECT_EQ(op_shape(Op::kCombineExperts, &args), "3 x 64");
}

}  // namespace
}  // namespace foretoken
