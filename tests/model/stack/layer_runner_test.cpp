#include "model/stack/layer_runner.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/files/forms/convert.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

using Row = std::vector<float>;

constexpr int32_t kHidden = 8, kInputs = 16, kInner = 12, kHeads = 4, kKvHeads = 2, kHeadDim = 4;
constexpr int32_t kQ = kHeads * kHeadDim, kKv = kKvHeads * kHeadDim;

// A row-major matrix of random numbers.
struct Matrix {
  Matrix(const char* name, int32_t num_rows, int32_t num_cols)
      : rows(num_rows), cols(num_cols), values(static_cast<size_t>(num_rows * num_cols)) {
    fill_random(name, num_rows * num_cols, 0.5f, DType::kF32, values.data());
  }
  std::vector<double> times(const std::vector<double>& x) const {
    std::vector<double> y(static_cast<size_t>(rows));
    for (size_t r = 0; r < y.size(); ++r) {
      for (size_t c = 0; c < x.size(); ++c) y[r] += values[r * x.size() + c] * x[c];
    }
    return y;
  }
  int32_t rows, cols;
  Row values;
};

// Two rows of one sequence, positions 0 and 1, whose attention reads twice the hidden size.
class LayerRunnerTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (test_device() == nullptr) return;
    config_.hidden_size = kHidden;
    config_.rms_norm_eps = 1e-5f;
    Gqa attention;
    attention.spec = {.num_heads = kHeads,
                      .num_kv_heads = kKvHeads,
                      .head_dim = kHeadDim,
                      .inputs = kInputs,
                      .scale = 0.5f};
    attention.qkv = linear(qkv_);
    attention.o = linear(o_);
    GatedMlp mlp;
    mlp.spec.inner = kInner;
    mlp.gate_up = linear(gate_up_, WeightOrder::kGateUp);
    mlp.down = linear(down_);
    layer_.mixer = std::move(attention);
    layer_.feed_forward = std::move(mlp);
    layer_.feed_forward_norm.weight = to_device(norm_.values);
    layer_.joints = joints_of(pre_norm_layer(GqaSpec(), GatedMlpSpec()));
  }

  Linear linear(const Matrix& matrix, WeightOrder order = WeightOrder::kPlain) {
    const WeightPart part{matrix.values.data(), matrix.rows};
    void* packed = device().pack_weight({&part, 1}, matrix.cols, DType::kF32, order);
    return {
        PackedWeight(device(), packed), nullptr, matrix.rows, matrix.cols, false, {}, false, {}};
  }

  // The residual and what is still to be added to it, both rows.
  std::pair<Row, Row> run(int32_t kv_begin, int32_t max_rows = 2) {
    Arena scratch(device(), MemoryKind::kDevice);
    const auto* backend = find_attention_backend("auto", device()).value();
    LayerRunner runner(device(), config_, *backend, max_rows);
    runner.fit(layer_);
    EXPECT_TRUE(runner.take_scratch(scratch).ok());
    const size_t cache = 2 * 4 * kKv;
    const auto padded = [&](int32_t first, int32_t second) {
      std::vector<int32_t> values(static_cast<size_t>(max_rows), 0);
      values[0] = first;
      values[1] = second;
      return to_device(values);
    };
    const LayerRows rows{queue(), to_device(std::vector<StepCounts>{{2, 0, 0, 0}}), padded(0, 1),
                         padded(0, 0), max_rows};
    const LayerKv kv{
        .kv = {allocate<float>(cache), allocate<float>(cache), kKvHeads, 4, kHeadDim, DType::kF32},
        .kv_slot = padded(4, 5),
        .block_tables = to_device(std::vector<int32_t>{1}),
        .max_blocks = 1,
        .rope = {},
        .kv_begin = kv_begin};
    write(runner.residual(), residual_.values);
    Row x = x_.values;
    x.resize(static_cast<size_t>(max_rows) * kInputs);
    const float* delta = runner.run(rows, kv, layer_, to_device(x));
    return {read(runner.residual(), 2 * kHidden),
            delta == nullptr ? Row() : read(delta, 2 * kHidden)};
  }

  // What attention makes of a row that sees itself alone: its own value.
  std::vector<double> attention_of(size_t row) const {
    const std::vector<double> x(x_.values.begin() + static_cast<ptrdiff_t>(row * kInputs),
                                x_.values.begin() + static_cast<ptrdiff_t>((row + 1) * kInputs));
    const std::vector<double> qkv = qkv_.times(x);
    std::vector<double> attended;
    for (size_t i = 0; i < kQ; ++i) {
      const size_t kv_head = i / kHeadDim / (kHeads / kKvHeads);
      attended.push_back(qkv[kQ + kKv + kv_head * kHeadDim + i % kHeadDim]);
    }
    return o_.times(attended);
  }
  // What the MLP makes of a residual, through its norm.
  std::vector<double> mlp_of(const std::vector<double>& residual) const {
    double square = 0;
    for (const double value : residual) square += value * value;
    std::vector<double> normed;
    for (size_t i = 0; i < kHidden; ++i) {
      normed.push_back(residual[i] / std::sqrt(square / kHidden + 1e-5) * norm_.values[i]);
    }
    const std::vector<double> gate_up = gate_up_.times(normed);
    std::vector<double> gated;
    for (size_t i = 0; i < kInner; ++i) {
      gated.push_back(gate_up[i] / (1 + std::exp(-gate_up[i])) * gate_up[kInner + i]);
    }
    return down_.times(gated);
  }
  // The residual of a row as it enters, plus `scale` times what is added.
  std::vector<double> residual_of(size_t row, const std::vector<double>& added = {},
                                  double scale = 1) const {
    std::vector<double> residual(kHidden);
    for (size_t i = 0; i < kHidden; ++i) {
      residual[i] = residual_.values[row * kHidden + i] + (added.empty() ? 0 : scale * added[i]);
    }
    return residual;
  }
  static void expect_row(const Row& all, size_t row, const std::vector<double>& want) {
    for (size_t i = 0; i < kHidden; ++i) EXPECT_NEAR(all[row * kHidden + i], want[i], 1e-5);
  }
  void expect_alone(const std::pair<Row, Row>& result, size_t row) const {
    const auto residual = residual_of(row, attention_of(row));
    expect_row(result.first, row, residual);
    expect_row(result.second, row, mlp_of(residual));
  }

  ModelConfig config_;
  const Matrix qkv_{"qkv", kQ + 2 * kKv, kInputs}, o_{"o", kHidden, kQ},
      gate_up_{"gate_up", 2 * kInner, kHidden}, down_{"down", kHidden, kInner},
      norm_{"norm", 1, kHidden}, x_{"x", 2, kInputs}, residual_{"residual", 2, kHidden};
  DecoderLayer layer_;
};

TEST_F(LayerRunnerTest, ARowThatSeesItselfAlone) {
  const auto result = run(1);
  expect_alone(result, 0);
  expect_alone(result, 1);
}

// With many rows the products are added to the residual where they arise.
TEST_F(LayerRunnerTest, ManyRowsHaveTheSameBits) {
  const auto few = run(0), many = run(0, 65);
  ASSERT_TRUE(many.second.empty());
  for (size_t i = 0; i < 2 * kHidden; ++i) {
    EXPECT_EQ(many.first[i], few.first[i] + few.second[i]) << i;
  }
}

TEST_F(LayerRunnerTest, LaterRowsSeeEarlierOnes) {
  const auto result = run(0), alone = run(1);
  expect_alone(result, 0);
  double difference = 0;
  for (size_t i = kHidden; i < 2 * kHidden; ++i) {
    difference = std::max(difference, std::abs(double(result.first[i]) - alone.first[i]));
  }
  EXPECT_GT(difference, 1e-2);
}

// Both parts read the residual that enters, which stays as it is until both are added.
TEST_F(LayerRunnerTest, ParallelParts) {
  layer_.parallel = true;
  layer_.joints = joints_of(parallel_layer(GqaSpec(), GatedMlpSpec()));
  for (const int32_t max_rows : {2, 65}) {
    const auto result = run(1, max_rows);
    for (const size_t row : {0u, 1u}) {
      expect_row(result.first, row, residual_of(row));
      std::vector<double> sum = attention_of(row);
      const std::vector<double> mlp = mlp_of(residual_of(row));
      for (size_t i = 0; i < kHidden; ++i) sum[i] += mlp[i];
      expect_row(result.second, row, sum);
    }
  }
}

TEST_F(LayerRunnerTest, LayersMayLackAPart) {
  DecoderLayer whole = std::move(layer_);
  layer_.mixer = std::move(whole.mixer);
  layer_.feed_forward = Absent();
  expect_row(run(1).second, 0, attention_of(0));
  layer_.mixer = Absent();
  layer_.feed_forward = std::move(whole.feed_forward);
  layer_.feed_forward_norm = whole.feed_forward_norm;
  const auto result = run(1);
  expect_row(result.first, 1, residual_of(1));
  expect_row(result.second, 1, mlp_of(residual_of(1)));
}

// What a part adds is scaled where it is added; the last part's output is added later.
TEST_F(LayerRunnerTest, ScaledResiduals) {
  config_.residual_scale = 0.25f;
  for (const int32_t max_rows : {2, 65}) {
    const auto result = run(1, max_rows);
    const auto residual = residual_of(1, attention_of(1), 0.25);
    expect_row(result.first, 1, residual);
    expect_row(result.second, 1, mlp_of(residual));
  }
}

}  // namespace
}  // namespace foretoken
