#include "kernels/experts/combine_experts.h"

#include <cmath>
#include <utility>

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

// The sums added to a residual and normed at once: the bits of both ops, and of each row alone.
TEST_P(CombineExpertsTest, WithANormItIsBothOps) {
  const Case c = GetParam();
  for (const int hidden : {kHidden, kHidden - 1}) {
    const auto norm = random_floats(size_t(hidden), 6);
    const size_t element = dtype_size(c.dtype);
    const auto bytes = [&](const CombineExpertsArgs& args, int rows) {
      const size_t count = size_t(rows) * size_t(hidden);
      const auto sums = read(reinterpret_cast<const uint8_t*>(args.out), count * sizeof(float));
      const auto normed = read(static_cast<const uint8_t*>(args.normed), count * element);
      return std::pair(sums, normed);
    };
    const auto run = [&](int first, int rows, bool at_once) {
      const auto part = [&](const auto& all, int of_row) {
        return to_device(
            std::vector(all.begin() + first * of_row, all.begin() + (first + rows) * of_row));
      };
      CombineExpertsArgs args{.counts = counts(rows),
                              .y = part(y_.bytes, kTop * hidden * int(element)),
                              .ids = part(ids_, kTop),
                              .weights = c.weights ? part(weights_, kTop) : nullptr,
                              .shared = c.shared ? part(shared_, hidden) : nullptr,
                              .shared_gate = c.gate ? part(gate_, 1) : nullptr,
                              .out = part(out_, hidden),
                              .first_expert = kFirst,
                              .num_own = kOwn,
                              .top_k = kTop,
                              .max_rows = rows,
                              .hidden = hidden,
                              .dtype = c.dtype,
                              .add = c.add ? 1 : 0};
      void* normed = marked(size_t(rows) * size_t(hidden) * element);
      if (!at_once) combine_experts(queue(), args);
      args.norm = to_device(norm);
      args.normed = normed;
      args.norm_eps = 1e-5f;
      at_once ? combine_experts(queue(), args) : rms_norm(queue(), norm_behind(args));
      return bytes(args, rows);
    };
    const auto both = run(0, kRows, false), at_once = run(0, kRows, true);
    ASSERT_EQ(at_once.first, both.first) << hidden;
    ASSERT_EQ(at_once.second, both.second) << hidden;
    const auto one = run(3, 1, true);
    const size_t row = size_t(hidden) * element;
    ASSERT_TRUE(std::equal(one.second.begin(), one.second.end(),
                           at_once.second.begin() + ptrdiff_t(3 * row)))
        << hidden;
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
  args.norm = &shared;  // what it writes, too
  const OpCost normed = op_cost(Op::kCombineExperts, &args, {.counts = {5, 0, 1, 0}});
  EXPECT_EQ(normed.row_bytes, cost.row_bytes + 5 * 64 * 2);
  EXPECT_EQ(op_shape(Op::kCombineExperts, &args), "3 x 64, normed");
}

}  // namespace
}  // namespace foretoken
