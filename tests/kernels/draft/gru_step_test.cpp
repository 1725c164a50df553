#include "kernels/draft/gru_step.h"

#include <cmath>

#include "support/row_ops.h"

namespace foretoken {
namespace {

class GruStepTest : public RowOpTest {
 protected:
  static constexpr int kSlots = 5;

  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

  // Rows of the slots 3, 0 and 4, of which `live` count; `first`: the states are taken as zeros.
  void check(int size, int live, bool first) {
    const std::vector<int32_t> slots = {3, 0, 4};
    const auto wide = static_cast<size_t>(3 * size);
    const auto x = random_floats(3 * wide, 3);
    const auto h = random_floats(3 * wide, 4);
    const auto before = random_floats(kSlots * static_cast<size_t>(size), 5);
    float* states = to_device(before);
    gru_step(queue(), {.counts = counts(live),
                       .of_input = to_device(x),
                       .of_state = first ? nullptr : to_device(h),
                       .row_slot = to_device(slots),
                       .states = states,
                       .max_rows = 3,
                       .size = size});
    std::vector<double> want(before.begin(), before.end());
    for (int row = 0; row < live; ++row) {
      for (int i = 0; i < size; ++i) {
        const auto gate = [&](const std::vector<float>& of, int part) -> double {
          return of[static_cast<size_t>(row) * wide + static_cast<size_t>(part * size + i)];
        };
        const auto carried = [&](int part) { return first ? 0.0 : gate(h, part); };
        double& state = want[static_cast<size_t>(slots[static_cast<size_t>(row)] * size + i)];
        const double r = sigmoid(gate(x, 0) + carried(0));
        const double z = sigmoid(gate(x, 1) + carried(1));
        const double n = std::tanh(gate(x, 2) + r * carried(2));
        state = (1 - z) * n + z * (first ? 0.0 : state);
      }
    }
    const std::vector<float> got = read(states, want.size());
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-6) << i;
  }
};

TEST_F(GruStepTest, GoesOnWithTheStateOfEachSlot) {
  for (const int size : {1, 32, 300}) check(size, 3, false);
}

TEST_F(GruStepTest, BeginsWithZeros) { check(40, 3, true); }

TEST_F(GruStepTest, RowsThatAreNotLiveChangeNothing) {
  check(16, 1, false);
  check(16, 0, false);
}

}  // namespace
}  // namespace foretoken
