#include "kernels/linear/selective_scan.h"

#include <cmath>
#include <tuple>

#include "kernels/linear/stepped_runs.h"

namespace foretoken {
namespace {

// Channels and d_state.
using ScanCase = std::tuple<int, int>;
// Of each slot, by position.
using Sequences = std::vector<std::vector<float>>;

class SelectiveScanTest : public SteppedRowsTest, public testing::WithParamInterface<ScanCase> {
 protected:
  static constexpr int kSlots = 3, kMaxDrafts = 4, kSize = 37;
  bool knows_lengths_ = true;

  struct Memory {
    float* states;
    int32_t* committed;
    float* pending;
  };
  struct Data {
    Sequences x, steps, maps;  // maps: [keys | queries | a number that nobody reads]
  };

  static int channels() { return std::get<0>(GetParam()); }
  static int d_state() { return std::get<1>(GetParam()); }
  static size_t maps_size() { return static_cast<size_t>(2 * d_state() + 1); }
  static Data data() {
    Data all;
    for (uint64_t slot = 0; slot < kSlots; ++slot) {
      const auto size = static_cast<size_t>(kSize);
      all.x.push_back(random_floats(size * static_cast<size_t>(channels()), 10 + slot));
      all.steps.push_back(random_floats(size * static_cast<size_t>(channels()), 20 + slot));
      all.maps.push_back(random_floats(size * maps_size(), 30 + slot));
    }
    return all;
  }
  static std::vector<float> rates() {
    auto rates = random_floats(static_cast<size_t>(channels() * d_state()), 40);
    for (float& rate : rates) rate = std::abs(rate);
    return rates;
  }
  static std::vector<float> skips() { return random_floats(static_cast<size_t>(channels()), 50); }
  // What another sequence left, or anything.
  Memory memory() {
    const size_t slots = kSlots + 1, rows = kMaxDrafts + 1;
    const auto states = static_cast<size_t>(channels() * d_state());
    const auto update = static_cast<size_t>(d_state() + 2 * channels());
    return {to_device(std::vector<float>(slots * states, NAN)),
            to_device(std::vector<int32_t>(slots, 7)),
            to_device(std::vector<float>(slots * rows * update, NAN))};
  }
  std::vector<float> launch(const SteppedLaunch& runs, const Memory& memory, const Data& data) {
    const Rows rows = rows_of(runs, kSlots);
    const auto width = static_cast<size_t>(channels());
    const float* maps = to_device(packed(runs, maps_size(), data.maps));
    const size_t size = static_cast<size_t>(rows.max_rows) * width;
    float* out = to_device(std::vector<float>(size, -99));
    selective_scan(queue(), {.counts = rows.counts,
                             .x = to_device(packed(runs, width, data.x)),
                             .steps = to_device(packed(runs, width, data.steps)),
                             .keys = maps,
                             .queries = maps + d_state(),
                             .rates = to_device(rates()),
                             .skip = to_device(skips()),
                             .positions = rows.positions,
                             .row_slot = rows.row_slot,
                             .slots = knows_lengths_ ? rows.slots : nullptr,
                             .states = memory.states,
                             .committed = memory.committed,
                             .pending = memory.pending,
                             .out = out,
                             .maps_stride = static_cast<int32_t>(maps_size()),
                             .max_rows = rows.max_rows,
                             .channels = channels(),
                             .d_state = d_state(),
                             .pending_rows = kMaxDrafts + 1});
    return read(out, size);
  }
  // All of a sequence in one launch.
  std::vector<float> at_once(const Data& data, int slot) {
    auto out = launch({{slot, 0, kSize, kSize + 1, kSize}}, memory(), data);
    for (size_t i = out.size() - static_cast<size_t>(channels()); i < out.size(); ++i) {
      EXPECT_EQ(out[i], -99) << "behind the live rows";
    }
    return out;
  }
  // In steps, in memory that holds what others left, with the bits of one launch.
  void expect_same(StepChoice choice) {
    const Data all = data();
    Sequences want;
    for (int slot = 0; slot < kSlots; ++slot) want.push_back(at_once(all, slot));
    const Memory kept = memory();
    for (uint64_t seed = 0; seed < 3; ++seed) {
      std::vector<std::vector<SteppedLaunch>> sequences;
      for (int slot = 0; slot < kSlots; ++slot) {
        sequences.push_back(stepped_runs(slot, kSize, choice, 10 * seed + uint64_t(slot)));
      }
      for (const SteppedLaunch& runs : together(sequences)) {
        expect_rows(runs, launch(runs, kept, all), want);
      }
    }
  }
  static void expect_rows(const SteppedLaunch& runs, const std::vector<float>& out,
                          const Sequences& want) {
    const auto width = static_cast<size_t>(channels());
    size_t row = 0;
    for (const SteppedRun& run : runs) {
      for (int i = 0; i < run.count; ++i, ++row) {
        if (i >= run.right) continue;
        const float* expected = want[size_t(run.slot)].data() + size_t(run.begin + i) * width;
        for (size_t c = 0; c < width; ++c) {
          ASSERT_EQ(out[row * width + c], expected[c])
              << "slot " << run.slot << " position " << run.begin + i << " channel " << c;
        }
      }
    }
  }
};

TEST_P(SelectiveScanTest, MatchesDouble) {
  const Data all = data();
  const auto out = at_once(all, 1), rates = this->rates(), skip = skips();
  const auto width = static_cast<size_t>(channels()), states = static_cast<size_t>(d_state());
  for (size_t c = 0; c < width; ++c) {
    std::vector<double> h(states);
    for (size_t r = 0; r < kSize; ++r) {
      const double x = all.x[1][r * width + c];
      const double step = std::log1p(std::exp(double{all.steps[1][r * width + c]}));
      const float* maps = all.maps[1].data() + r * maps_size();
      double want = skip[c] * x;
      for (size_t n = 0; n < states; ++n) {
        h[n] = h[n] * std::exp(-rates[n * width + c] * step) + step * x * maps[n];
        want += h[n] * maps[states + n];
      }
      ASSERT_NEAR(out[r * width + c], want, 1e-5 * (1 + std::abs(want))) << r << " " << c;
    }
  }
}

TEST_P(SelectiveScanTest, ChunksHaveTheBitsOfOneRun) { expect_same({9, 0, false}); }
TEST_P(SelectiveScanTest, RejectedDraftsLeaveNothing) { expect_same({9, kMaxDrafts, false}); }
TEST_P(SelectiveScanTest, DraftPassesLeaveNothing) { expect_same({9, kMaxDrafts, true}); }

TEST_P(SelectiveScanTest, RejectedDraftsLeaveNothingWhereLengthsAreUnknown) {
  knows_lengths_ = false;
  expect_same({9, kMaxDrafts, false});
}

INSTANTIATE_TEST_SUITE_P(Sizes, SelectiveScanTest,
                         testing::Values(ScanCase{128, 16}, ScanCase{70, 5}, ScanCase{8, 64}));

}  // namespace
}  // namespace foretoken
