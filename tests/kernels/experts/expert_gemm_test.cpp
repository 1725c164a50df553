#include "kernels/experts/expert_gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "kernels/gemm/pack_rows.h"
#include "kernels/op_cost.h"
#include "kernels/rows/round_rows.h"
#include "support/quant_data.h"
#include "support/rounded_rows.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

struct ExpertGemmCase {
  int experts;
  int top_k;
  int n;  // of an expert
  int k;
  DType dtype;
  bool gated = false;
  bool by_entry = false;
  bool bias = false;
  bool scales = false;
  std::optional<QuantForm> form = {};
  bool clamped = false;
  bool shared = false;
};

constexpr GateClamp kTestClamp{0.8f, 1.5f, 0.6f, 0.5f};

double gated_value(const ExpertGemmCase& c, double gate, double up) {
  if (!c.clamped) return gate / (1 + std::exp(-gate)) * up;
  gate = std::min(gate, double{kTestClamp.limit});
  up = std::clamp(up, -double{kTestClamp.up_limit}, double{kTestClamp.up_limit});
  return (up + kTestClamp.shift) * gate / (1 + std::exp(-kTestClamp.alpha * gate));
}

// How far products of quantised weights lie from those of doubles: x is rounded to eight bits.
constexpr double kQuantError = 8e-3;

class ExpertGemmTest : public RowOpTest, public testing::WithParamInterface<ExpertGemmCase> {
 protected:
  void SetUp() override {
    RowOpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const ExpertGemmCase c = GetParam();
    if (c.form && !keeps(*c.form)) {
      GTEST_SKIP() << "the device does not keep this form";
    }
    if (!c.form) {
      pack_plain();
    } else if (!is_widened(*c.form)) {
      pack_quantized(*c.form);
    } else {
      pack_widened(*c.form);
    }
    ASSERT_NE(packed_, nullptr);
    if (c.bias) bias_ = random_floats(size_t(c.experts) * size_t(c.n), 4);
    if (c.shared) pack_shared();
  }
  void TearDown() override {
    if (packed_ != nullptr) {
      drain();
      device().free_weight(packed_);
    }
    if (packed_shared_ != nullptr) device().free_weight(packed_shared_);
    RowOpTest::TearDown();
  }

  WeightOrder order() const {
    return GetParam().gated ? WeightOrder::kGateUp : WeightOrder::kPlain;
  }
  int64_t unit() const { return GetParam().gated ? GetParam().n / 2 : GetParam().n; }
  int outputs() const { return static_cast<int>(unit()); }

  bool keeps(const QuantForm& form) {
    const ExpertGemmCase c = GetParam();
    const QuantizedPart part = {form, int64_t{c.experts} * c.n};
    if (is_widened(form)) return device().multiplies_rounded(form, c.k, c.dtype);
    return device().keeps_quantized(form, c.k, c.dtype) &&
           device().keeps_together({&part, 1}, unit());
  }

  bool rounds() const { return GetParam().form && GetParam().form->rounds_rows; }
  bool is_cpu() { return device().type() == DeviceType::kCpu; }
  // Of weights for rounded rows.
  bool is_widened(const QuantForm& form) {
    return form.rounds_rows && !device().keeps_quantized(form, GetParam().k, GetParam().dtype);
  }

  void pack_values(const std::vector<float>& values) {
    const ExpertGemmCase c = GetParam();
    const TypedData data = typed_data(values, c.dtype);
    weight_ = data.values;
    const std::array<WeightPart, 1> part = {{{data.data(), int64_t{c.experts} * c.n}}};
    packed_ = device().pack_weight(part, c.k, c.dtype, order(), unit());
  }
  void pack_plain() {
    const ExpertGemmCase c = GetParam();
    const int64_t rows = int64_t{c.experts} * c.n;
    pack_values(random_floats(size_t(rows * c.k), 1, 1 / std::sqrt(float(c.k))));
  }
  void pack_widened(const QuantForm& form) {
    const ExpertGemmCase c = GetParam();
    const auto bytes = random_quantized_rows(form, int64_t{c.experts} * c.n, c.k, 1);
    pack_values(dequantized(form, bytes, c.k));
  }

  // Of another shape than the experts.
  static constexpr int kSharedColumns = 48;
  int shared_n() const { return GetParam().gated ? 2 * kSharedColumns : kSharedColumns; }
  int shared_k() const { return GetParam().k + 64; }

  void pack_shared() {
    const ExpertGemmCase c = GetParam();
    const TypedData data = typed_data(random_floats(size_t(shared_n() * shared_k()), 5), c.dtype);
    const std::array<WeightPart, 1> part = {{{data.data(), shared_n()}}};
    packed_shared_ = device().pack_weight(part, shared_k(), c.dtype, order());
    ASSERT_NE(packed_shared_, nullptr);
    if (c.bias) shared_bias_ = random_floats(size_t(shared_n()), 6);
  }

  // What the op is to compute beside the experts for these rows.
  SharedExpert shared_of(int first, int rows, uint8_t* y) {
    const ExpertGemmCase c = GetParam();
    const TypedData x = typed_data(random_floats(size_t(512 * shared_k()), 7), c.dtype);
    const auto row_bytes = size_t(shared_k()) * dtype_size(c.dtype);
    const auto begin = x.bytes.begin() + std::ptrdiff_t(size_t(first) * row_bytes);
    return {to_device(std::vector(begin, begin + std::ptrdiff_t(size_t(rows) * row_bytes))),
            packed_shared_,
            y,
            c.bias ? to_device(shared_bias_) : nullptr,
            shared_n(),
            shared_k()};
  }

  void pack_quantized(const QuantForm& form) {
    const ExpertGemmCase c = GetParam();
    const int64_t rows = int64_t{c.experts} * c.n;
    const auto bytes = random_quantized_rows(form, rows, c.k, 1);
    weight_ = dequantized(form, bytes, c.k);
    const std::array<QuantizedPart, 1> part = {{{form, rows}}};
    const QuantizedWeight made =
        device().make_quantized_weight(part, c.k, c.dtype, order(), unit());
    packed_ = made.handle;
    ASSERT_EQ(2 * unit() % made.slice_rows, 0);
    PackRowsArgs pack;
    pack.weight = packed_;
    pack.num_rows = pack.n = rows;
    pack.k = c.k;
    pack.slice_rows = made.slice_rows;
    pack.dtype = c.dtype;
    pack.order = order();
    const int64_t row_bytes = quantized_row_bytes(form, c.k);
    std::vector<std::byte> ordered;
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t row = row_in_packing_order(i, rows, made.slice_rows, pack.order);
      ordered.insert(ordered.end(), bytes.begin() + row * row_bytes,
                     bytes.begin() + (row + 1) * row_bytes);
    }
    pack.rows = to_device(ordered);
    pack_rows(queue(), pack);
    drain();
  }

  // Which experts rows choose: each another few, some experts by nobody.
  std::vector<int32_t> ids_of(int first_row, int rows) const {
    const ExpertGemmCase c = GetParam();
    std::vector<int32_t> ids;
    for (int r = first_row; r < first_row + rows; ++r) {
      for (int i = 0; i < c.top_k; ++i) ids.push_back((r * r + 2 * i + r / 3) % (c.experts - 1));
    }
    return ids;
  }

  // y of all entries of these rows, which are rows [first, first + rows) of a step.
  std::vector<uint8_t> multiply(const TypedData& x, const std::vector<float>& scales, int first,
                                int rows) {
    const ExpertGemmCase c = GetParam();
    const std::vector<int32_t> ids = ids_of(first, rows);
    std::vector<int32_t> begins = {0}, entries;
    for (int e = 0; e < c.experts; ++e) {
      for (size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] == e) entries.push_back(static_cast<int32_t>(i));
      }
      begins.push_back(static_cast<int32_t>(entries.size()));
    }
    const int x_rows = c.by_entry ? c.top_k : 1;
    const auto row_bytes = size_t(x_rows * c.k) * dtype_size(c.dtype);
    const size_t y_bytes = size_t(rows * c.top_k * outputs()) * dtype_size(c.dtype);
    uint8_t* y = marked(y_bytes);
    ExpertGemmArgs args{};
    args.counts = counts(rows);
    args.x =
        to_device(std::vector(x.bytes.begin() + std::ptrdiff_t(size_t(first) * row_bytes),
                              x.bytes.begin() + std::ptrdiff_t(size_t(first + rows) * row_bytes)));
    if (rounds()) args.x = rounded(args.x, args.counts, rows, x_rows);
    args.weight = packed_;
    args.y = y;
    args.bias = c.bias ? to_device(bias_) : nullptr;
    args.x_scales = c.scales ? to_device(std::vector(scales.begin() + first * c.top_k,
                                                     scales.begin() + (first + rows) * c.top_k))
                             : nullptr;
    args.lists = {to_device(begins), to_device(entries), c.experts, c.top_k};
    args.max_rows = rows;
    args.n = c.n;
    args.k = c.k;
    args.dtype = c.dtype;
    args.by_entry = c.by_entry ? 1 : 0;
    args.gated = c.gated ? 1 : 0;
    if (c.clamped) args.activation = Activation::kClampedSilu;
    args.clamp = kTestClamp;
    const size_t shared_bytes =
        size_t(rows * kSharedColumns) * dtype_size(c.gated ? c.dtype : DType::kF32);
    uint8_t* shared_y = c.shared ? marked(shared_bytes) : nullptr;
    if (c.shared) args.shared = shared_of(first, rows, shared_y);
    expert_gemm(queue(), args);
    // Again at once, when the lists are known from the op before.
    args.y = marked(y_bytes);
    args.lists_are_old = 1;
    expert_gemm(queue(), args);
    const auto got = read(y, y_bytes);
    EXPECT_EQ(read(static_cast<uint8_t*>(args.y), y_bytes), got) << rows << " rows";
    if (c.shared) check_shared(args, read(shared_y, shared_bytes));
    return got;
  }

  // x of so many rows of a step, each of which has x_rows.
  const void* rounded(const void* x, const StepCounts* step, int rows, int x_rows) {
    const ExpertGemmCase c = GetParam();
    const int all = rows * x_rows;
    void* to = marked(static_cast<size_t>(rounded_rows_bytes(all, c.k, c.dtype)));
    round_rows(queue(), {step, x, to, RowKind::kToken, 0, all, c.k, c.dtype, x_rows});
    return to;
  }

  // What the op left beside the experts is what a product by itself leaves.
  void check_shared(const ExpertGemmArgs& args, const std::vector<uint8_t>& got) {
    GemmArgs alone = shared_product(args);
    uint8_t* y = marked(got.size());
    alone.y = y;
    gemm(queue(), alone);
    EXPECT_EQ(read(y, got.size()), got) << args.max_rows << " rows";
  }

  TypedData random_x(int rows) const {
    const ExpertGemmCase c = GetParam();
    return typed_data(random_floats(size_t(rows * (c.by_entry ? c.top_k : 1) * c.k), 2), c.dtype);
  }

  TypedData as_rounded(const TypedData& x) {
    TypedData rounded{{}, rounded_rows(x.values, GetParam().k)};
    return is_cpu() ? typed_data(rounded.values, GetParam().dtype) : rounded;
  }

  struct Sum {
    double value = 0;
    double size = 0;  // of its terms
  };
  // Row `row` of the stacked matrix times the x of an entry, as the op reads it.
  Sum product(const TypedData& x, const std::vector<float>& scales, int entry, int64_t row) {
    const ExpertGemmCase c = GetParam();
    const size_t from = size_t(c.by_entry ? entry : entry / c.top_k) * size_t(c.k);
    Sum sum;
    for (int j = 0; j < c.k; ++j) {
      float value = x.values[from + size_t(j)];
      if (c.scales) {
        value *= scales[size_t(entry)];
        if (!rounds() || is_cpu()) value = typed_data({value}, c.dtype).values[0];
      }
      const double term = double(value) * weight_[size_t(row * c.k + j)];
      sum.value += term;
      sum.size += std::abs(term);
    }
    if (c.bias) sum.value += bias_[size_t(row)];
    return sum;
  }

  std::vector<float> weight_, bias_, shared_bias_;
  void* packed_ = nullptr;
  void* packed_shared_ = nullptr;
};

TEST_P(ExpertGemmTest, MatchesDouble) {
  const ExpertGemmCase c = GetParam();
  const int rows = 9;
  const TypedData x = random_x(rows);
  const auto scales = random_floats(size_t(rows * c.top_k), 3);
  const auto y = to_floats(multiply(x, scales, 0, rows), c.dtype);
  const TypedData as_read = rounds() ? as_rounded(x) : x;
  const auto ids = ids_of(0, rows);
  for (int entry = 0; entry < rows * c.top_k; ++entry) {
    for (int i = 0; i < outputs(); i += 3) {
      const int64_t first = ids[size_t(entry)] * unit() + i;
      const Sum gate = product(as_read, scales, entry, first);
      double want = gate.value, size = gate.size;
      if (c.gated) {
        const Sum up = product(as_read, scales, entry, c.experts * unit() + first);
        want = gated_value(c, gate.value, up.value);
        size = gate.size * (std::abs(up.value) + 2) + up.size * (std::abs(gate.value) + 1);
      }
      const double relative = c.form ? kQuantError : 1e-6;
      const double bound = size * relative + std::abs(want) * storage_error(c.dtype) + 1e-6;
      ASSERT_NEAR(y[size_t(entry * outputs() + i)], want, bound)
          << "entry " << entry << " column " << i;
    }
  }
}

// The bits of an entry depend on its row and its expert alone.
TEST_P(ExpertGemmTest, RowsAreBitEqualForEveryCount) {
  const ExpertGemmCase c = GetParam();
  const TypedData x = random_x(512);
  const auto scales = random_floats(size_t(512 * c.top_k), 3);
  const size_t of_row = size_t(c.top_k * outputs()) * dtype_size(c.dtype);
  for (const int rows : {1, 2, 7, 17, 64, 65, 512}) {
    const auto y = multiply(x, scales, 0, rows);
    for (const int r : {0, rows / 2, rows - 1}) {
      const auto one = multiply(x, scales, r, 1);
      ASSERT_EQ(std::memcmp(y.data() + size_t(r) * of_row, one.data(), of_row), 0)
          << "row " << r << " of " << rows;
    }
  }
}

// Tiles, units and lists change with the number of rows; all rows of each have the bits of 512.
TEST_P(ExpertGemmTest, AllRowsOfEveryNumberHaveTheSameBits) {
  const ExpertGemmCase c = GetParam();
  const TypedData x = random_x(512);
  const auto scales = random_floats(size_t(512 * c.top_k), 3);
  const size_t of_row = size_t(c.top_k * outputs()) * dtype_size(c.dtype);
  const auto whole = multiply(x, scales, 0, 512);
  for (int rows = 1; rows < 512; rows += rows < 64 ? 1 : 5) {
    const auto y = multiply(x, scales, 0, rows);
    ASSERT_EQ(std::memcmp(y.data(), whole.data(), size_t(rows) * of_row), 0) << rows << " rows";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Plain, ExpertGemmTest,
    testing::Values(ExpertGemmCase{5, 2, 64, 64, DType::kF32},
                    ExpertGemmCase{5, 2, 64, 64, DType::kBF16},
                    ExpertGemmCase{5, 2, 128, 96, DType::kF32, true},
                    ExpertGemmCase{5, 2, 192, 96, DType::kBF16, true},
                    ExpertGemmCase{4, 3, 96, 40, DType::kBF16, false, true},
                    ExpertGemmCase{4, 3, 96, 64, DType::kF32, false, true, true},
                    ExpertGemmCase{9, 1, 64, 64, DType::kBF16, true, false, true, true},
                    ExpertGemmCase{9, 1, 64, 64, DType::kF32, true, false, false, true},
                    ExpertGemmCase{3, 2, 352, 1024, DType::kBF16, false, true},
                    ExpertGemmCase{3, 2, 704, 512, DType::kBF16, true},
                    ExpertGemmCase{17, 4, 32, 32, DType::kBF16, false, true},
                    ExpertGemmCase{5, 2, 128, 96, DType::kF32, true, false, true, false, {}, true},
                    ExpertGemmCase{
                        5, 2, 192, 96, DType::kBF16, true, false, true, false, {}, true}));

INSTANTIATE_TEST_SUITE_P(
    Quantized, ExpertGemmTest,
    testing::Values(ExpertGemmCase{5, 2, 64, 256, DType::kBF16, true, false, false, false,
                                   QuantForm{4, GroupScale::kHalf, 32}},
                    ExpertGemmCase{5, 2, 96, 256, DType::kF32, false, true, false, false,
                                   QuantForm{8, GroupScale::kHalf, 32}},
                    ExpertGemmCase{4, 3, 192, 512, DType::kBF16, true, false, false, true,
                                   QuantForm{6, GroupScale::kSuperSigned, 16}},
                    ExpertGemmCase{4, 3, 320, 256, DType::kBF16, false, true, true, false,
                                   QuantForm{4, GroupScale::kSuper, 32}},
                    ExpertGemmCase{4, 2, 64, 256, DType::kBF16, true, false, true, false,
                                   QuantForm{4, GroupScale::kHalf, 32, CodeTable::kE2m1}, true},
                    ExpertGemmCase{4, 2, 96, 256, DType::kF32, false, true, true, false,
                                   QuantForm{4, GroupScale::kHalf, 32, CodeTable::kE2m1}}));

// Forms that stay so on GPUs.
INSTANTIATE_TEST_SUITE_P(
    QuantizedOnGpus, ExpertGemmTest,
    testing::Values(ExpertGemmCase{4, 2, 192, 640, DType::kBF16, true, false, false, false,
                                   QuantForm{8, GroupScale::kFloatOfRow, 1, CodeTable::kE4m3}},
                    ExpertGemmCase{5, 3, 224, 256, DType::kBF16, false, true, false, false,
                                   QuantForm{8, GroupScale::kFloat, 128, CodeTable::kE4m3}},
                    ExpertGemmCase{4, 2, 320, 288, DType::kBF16, true, false, true, false,
                                   QuantForm{4, GroupScale::kHalf, 32, CodeTable::kE2m1, true},
                                   true},
                    ExpertGemmCase{4, 2, 64, 1024, DType::kBF16, false, true, true, false,
                                   QuantForm{4, GroupScale::kRowAndByte, 16, CodeTable::kE2m1}},
                    ExpertGemmCase{4, 2, 192, 384, DType::kBF16, true, false, false, false,
                                   QuantForm{4, GroupScale::kHalfAndZero, 128}},
                    ExpertGemmCase{4, 2, 128, 512, DType::kBF16, true, false, false, true,
                                   QuantForm{8, GroupScale::kHalf, 32}},
                    ExpertGemmCase{5, 2, 192, 768, DType::kBF16, true, false, true, false,
                                   QuantForm{5, GroupScale::kSuper, 32}},
                    ExpertGemmCase{5, 2, 192, 512, DType::kBF16, true, false, true, false,
                                   QuantForm{2, GroupScale::kSuper, 16}},
                    ExpertGemmCase{4, 2, 128, 768, DType::kBF16, false, true, false, true,
                                   QuantForm{3, GroupScale::kSuperSigned, 16}},
                    ExpertGemmCase{4, 3, 192, 256, DType::kBF16, true, false, false, false,
                                   QuantForm{4, GroupScale::kSuperSigned, 32, CodeTable::kIq4}},
                    ExpertGemmCase{5, 2, 64, 288, DType::kBF16, false, true, true, false,
                                   QuantForm{4, GroupScale::kHalf, 32, CodeTable::kIq4}},
                    ExpertGemmCase{4, 2, 192, 352, DType::kBF16, true, false, true, false,
                                   QuantForm{4, GroupScale::kHalfAndMinimum, 32}},
                    ExpertGemmCase{4, 2, 128, 256, DType::kBF16, true, false, false, false,
                                   QuantForm{5, GroupScale::kHalf, 32}},
                    ExpertGemmCase{5, 3, 96, 384, DType::kBF16, false, true, true, false,
                                   QuantForm{5, GroupScale::kHalfAndMinimum, 32}}));

// Rows in FP8, too: of kinds of scales, tiles of few and of many entries, and a last unit in part.
constexpr QuantForm rounding(GroupScale scale) {
  return {8, scale, scale == GroupScale::kFloat ? 128 : 1, CodeTable::kE4m3, false, true};
}
INSTANTIATE_TEST_SUITE_P(
    Rounded, ExpertGemmTest,
    testing::Values(ExpertGemmCase{4, 2, 192, 640, DType::kBF16, true, false, false, false,
                                   rounding(GroupScale::kFloatOfRow)},
                    ExpertGemmCase{5, 3, 224, 256, DType::kBF16, false, true, true, false,
                                   rounding(GroupScale::kFloat)},
                    ExpertGemmCase{9, 2, 320, 384, DType::kBF16, true, false, true, false,
                                   rounding(GroupScale::kFloat), true},
                    ExpertGemmCase{3, 2, 96, 288, DType::kBF16, false, true, false, false,
                                   rounding(GroupScale::kFloatOfRow)},
                    ExpertGemmCase{40, 3, 64, 256, DType::kBF16, true, false, false, true,
                                   rounding(GroupScale::kFloat)}));

// The expert that all rows share has the bits of a product by itself.
INSTANTIATE_TEST_SUITE_P(
    Shared, ExpertGemmTest,
    testing::Values(
        ExpertGemmCase{5, 2, 64, 64, DType::kF32, false, true, true, false, {}, false, true},
        ExpertGemmCase{5, 2, 192, 96, DType::kBF16, true, false, false, false, {}, false, true},
        ExpertGemmCase{40, 2, 704, 512, DType::kBF16, true, false, true, false, {}, false, true},
        ExpertGemmCase{40, 2, 96, 1024, DType::kBF16, false, true, true, false, {}, false, true},
        ExpertGemmCase{64, 6, 96, 64, DType::kBF16, false, true, false, false, {}, false, true}));

TEST(ExpertGemmCost, CountsTheExpertsThatRowsTouch) {
  ExpertGemmArgs args{};
  args.lists = {nullptr, nullptr, 64, 6};
  args.max_rows = 512;
  args.n = 128;
  args.k = 32;
  args.dtype = DType::kBF16;
  args.gated = 1;
  const auto cost = [&](int rows) {
    return op_cost(Op::kExpertGemm, &args, {.counts = {rows, 0, 1, 0}});
  };
  EXPECT_EQ(cost(1).weight_bytes, 6 * 128 * 32 * 2);
  EXPECT_EQ(cost(1).flops, 2 * 6 * 128 * 32);
  EXPECT_EQ(cost(1).row_bytes, (32 + 6 * 64) * 2);
  EXPECT_NEAR(double(cost(16).weight_bytes) / (128 * 32 * 2), 50.8, 0.1);
  EXPECT_LE(cost(512).weight_bytes, 64 * 128 * 32 * 2);
  args.lists.top_k = 64;
  EXPECT_EQ(cost(1).weight_bytes, 64 * 128 * 32 * 2);
  EXPECT_EQ(cost(0).weight_bytes, 0);
  EXPECT_EQ(op_shape(Op::kExpertGemm, &args), "64 x 128 x 32, gated");
}

TEST(ExpertGemmCost, CountsWhatIsShared) {
  ExpertGemmArgs args{};
  args.lists = {nullptr, nullptr, 64, 6};
  args.max_rows = 512;
  args.n = 128;
  args.k = 32;
  args.dtype = DType::kBF16;
  args.gated = 1;
  const auto cost = [&] { return op_cost(Op::kExpertGemm, &args, {.counts = {1, 0, 1, 0}}); };
  const OpCost alone = cost();
  args.shared = {&args, &args, &args, nullptr, 96, 32};
  EXPECT_EQ(cost().weight_bytes - alone.weight_bytes, 96 * 32 * 2);
  EXPECT_EQ(cost().flops - alone.flops, 2 * 96 * 32);
  EXPECT_EQ(op_shape(Op::kExpertGemm, &args), "64 x 128 x 32, gated + 96 x 32");
}

// A quarter of the experts is touched, and has work, as often as all of them.
TEST(ExpertGemmCost, CountsThePartOfARankThatHasSomeExperts) {
  ExpertGemmArgs args{};
  args.lists = {nullptr, nullptr, 16, 8, 64};
  args.max_rows = 512;
  args.n = 128;
  args.k = 32;
  args.dtype = DType::kBF16;
  const auto cost = [&](int rows) {
    return op_cost(Op::kExpertGemm, &args, {.counts = {rows, 0, 1, 0}});
  };
  EXPECT_EQ(cost(1).weight_bytes, 2 * 128 * 32 * 2);
  EXPECT_EQ(cost(1).flops, 2 * 2 * 128 * 32);
  EXPECT_EQ(cost(512).flops, 512 * cost(1).flops);
}

}  // namespace
}  // namespace foretoken
