#include "kernels/attention/gate_heads.h"

#include <cmath>
#include <tuple>

#include "support/row_ops.h"

namespace foretoken {
namespace {

// Type of the rows, width of a head, whether each element has a gate, and what becomes of it.
using GateCase = std::tuple<DType, int, bool, HeadGate>;

class GateHeadsTest : public RowOpTest, public testing::WithParamInterface<GateCase> {
 protected:
  static constexpr int kHeads = 3;

  static double gate_of(HeadGate gate, double x) {
    if (gate == HeadGate::kSigmoid) return 1 / (1 + std::exp(-x));
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  }
  static std::vector<float> gates_of(size_t count) {
    auto gates = random_floats(count, 2, 6.0f);
    gates[0] = 0;
    gates[1] = -80;
    gates[2] = 100;
    if (count > 6) {
      gates[3] = -16.5f;
      gates[4] = -1e-3f;
      gates[5] = 25;
    }
    return gates;
  }
  GateHeadsArgs args(int rows, int max_rows, void* x, const std::vector<float>& gates) {
    const auto [dtype, dim, each, gate] = GetParam();
    return {counts(rows), x, to_device(gates), max_rows, kHeads, dim, each, gate, dtype};
  }
};

TEST_P(GateHeadsTest, MatchesDoubleOnTokenRows) {
  const auto [dtype, dim, each, gate] = GetParam();
  constexpr int kMaxRows = 4, kRows = 3;
  const size_t size = static_cast<size_t>(kHeads) * static_cast<size_t>(dim);
  const auto x = typed_data(random_floats(kMaxRows * size, 1), dtype);
  const size_t gates_size = each ? size : kHeads;
  const auto gates = gates_of(kMaxRows * gates_size);
  void* memory = upload_typed(x);
  gate_heads(queue(), args(kRows, kMaxRows, memory, gates));
  const auto y = read_typed(memory, kMaxRows * size, dtype);
  for (size_t i = 0; i < kRows * size; ++i) {
    const size_t row = i / size, at = i % size;
    const double g = gates[row * gates_size + (each ? at : at / static_cast<size_t>(dim))];
    const double want = double(x.values[i]) * gate_of(gate, g);
    ASSERT_NEAR(y[i], want, std::abs(want) * storage_error(dtype) + 1e-36) << i << " gate " << g;
  }
  for (size_t i = kRows * size; i < kMaxRows * size; ++i) ASSERT_EQ(y[i], x.values[i]) << i;
}

TEST_P(GateHeadsTest, RowsAreBitEqualAloneAndInABatch) {
  const auto [dtype, dim, each, gate] = GetParam();
  constexpr int kRows = 5;
  const size_t size = static_cast<size_t>(kHeads) * static_cast<size_t>(dim);
  const size_t gates_size = each ? size : kHeads;
  const auto x = typed_data(random_floats(kRows * size, 1), dtype);
  const auto gates = gates_of(kRows * gates_size);
  void* memory = upload_typed(x);
  gate_heads(queue(), args(kRows, kRows, memory, gates));
  const auto together = read_typed(memory, kRows * size, dtype);
  const size_t bytes = size * dtype_size(dtype);
  for (size_t r = 0; r < kRows; ++r) {
    const auto* from = x.bytes.data() + r * bytes;
    void* row = to_device(std::vector<uint8_t>(from, from + bytes));
    const auto first = gates.begin() + static_cast<ptrdiff_t>(r * gates_size);
    gate_heads(queue(), args(1, 1, row, {first, first + static_cast<ptrdiff_t>(gates_size)}));
    const auto alone = read_typed(row, size, dtype);
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(alone[i], together[r * size + i]) << r << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, GateHeadsTest,
    testing::Combine(testing::Values(DType::kF32, DType::kBF16), testing::Values(5, 64, 200),
                     testing::Bool(), testing::Values(HeadGate::kSigmoid, HeadGate::kSoftplus)));

}  // namespace
}  // namespace foretoken
