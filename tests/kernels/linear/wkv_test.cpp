#include "kernels/linear/wkv.h"

#include <cmath>
#include <tuple>

#include "kernels/linear/stepped_runs.h"

namespace foretoken {
namespace {

// Heads, key_dim and value_dim.
using WkvCase = std::tuple<int, int, int>;
using WkvSequences = std::vector<std::vector<float>>;

class WkvTest : public SteppedRowsTest, public testing::WithParamInterface<WkvCase> {
 protected:
  static constexpr int kSlots = 3, kMaxDrafts = 4, kSize = 29;
  bool knows_lengths_ = true;

  struct Memory {
    float* states;
    int32_t* committed;
    float* pending;
  };

  static LinearShape shape() {
    const auto [heads, key_dim, value_dim] = GetParam();
    return {.key_heads = heads,
            .value_heads = heads,
            .key_dim = key_dim,
            .value_dim = value_dim,
            .channel_decay = true,
            .removes = true};
  }
  static size_t row_size() { return static_cast<size_t>(shape().row_size()); }
  static size_t width() { return static_cast<size_t>(shape().v_size()); }
  // Decays between 0.4 and 1; what is taken out of S is less than S.
  static WkvSequences data() {
    WkvSequences all;
    const LinearShape of = shape();
    for (uint64_t slot = 0; slot < kSlots; ++slot) {
      auto& rows = all.emplace_back(random_floats(kSize * row_size(), 10 + slot));
      for (size_t i = 0; i < rows.size(); ++i) {
        const auto column = static_cast<int32_t>(i % row_size());
        if (column >= of.removed_offset()) {
          rows[i] *= 0.2f;
        } else if (column >= of.decay_offset()) {
          rows[i] = 0.4f + 0.6f / (1.0f + std::exp(rows[i]));
        }
      }
    }
    return all;
  }
  // What another sequence left, or anything.
  Memory memory() {
    const size_t slots = kSlots + 1, rows = kMaxDrafts + 1;
    return {to_device(std::vector<float>(slots * static_cast<size_t>(shape().state_size()), NAN)),
            to_device(std::vector<int32_t>(slots, 7)),
            to_device(std::vector<float>(slots * rows * static_cast<size_t>(shape().update_size()),
                                         NAN))};
  }
  std::vector<float> launch(const SteppedLaunch& runs, const Memory& memory,
                            const WkvSequences& data) {
    const Rows rows = rows_of(runs, kSlots);
    const size_t size = static_cast<size_t>(rows.max_rows) * width();
    float* out = to_device(std::vector<float>(size, -99));
    wkv(queue(), {.counts = rows.counts,
                  .x = to_device(packed(runs, row_size(), data)),
                  .positions = rows.positions,
                  .row_slot = rows.row_slot,
                  .slots = knows_lengths_ ? rows.slots : nullptr,
                  .states = memory.states,
                  .committed = memory.committed,
                  .pending = memory.pending,
                  .out = out,
                  .shape = shape(),
                  .max_rows = rows.max_rows,
                  .pending_rows = kMaxDrafts + 1});
    return read(out, size);
  }
  std::vector<float> at_once(const WkvSequences& data, int slot) {
    return launch({{slot, 0, kSize, kSize + 1, kSize}}, memory(), data);
  }
  // In steps, in memory that holds what others left, with the bits of one launch.
  void expect_same(StepChoice choice) {
    const WkvSequences all = data();
    WkvSequences want;
    for (int slot = 0; slot < kSlots; ++slot) want.push_back(at_once(all, slot));
    const Memory kept = memory();
    for (uint64_t seed = 0; seed < 3; ++seed) {
      std::vector<std::vector<SteppedLaunch>> sequences;
      for (int slot = 0; slot < kSlots; ++slot) {
        sequences.push_back(stepped_runs(slot, kSize, choice, 10 * seed + uint64_t(slot)));
      }
      for (const SteppedLaunch& runs : together(sequences)) {
        const auto out = launch(runs, kept, all);
        size_t row = 0;
        for (const SteppedRun& run : runs) {
          for (int i = 0; i < run.count; ++i, ++row) {
            if (i >= run.right) continue;
            const float* expected = want[size_t(run.slot)].data() + size_t(run.begin + i) * width();
            for (size_t c = 0; c < width(); ++c) {
              ASSERT_EQ(out[row * width() + c], expected[c])
                  << "slot " << run.slot << " position " << run.begin + i << " column " << c;
            }
          }
        }
      }
    }
  }
};

TEST_P(WkvTest, MatchesDouble) {
  const WkvSequences all = data();
  const auto out = at_once(all, 1);
  const LinearShape of = shape();
  const auto keys = size_t(of.key_dim), values = size_t(of.value_dim);
  for (size_t head = 0; head < size_t(of.value_heads); ++head) {
    std::vector<double> s(keys * values);
    for (size_t r = 0; r < kSize; ++r) {
      const float* q = all[1].data() + r * row_size() + head * keys;
      const float *k = q + of.k_offset(), *decay = q + of.decay_offset();
      const float *removed = q + of.removed_offset(), *returned = q + of.returned_offset();
      const float* v = all[1].data() + r * row_size() + size_t(of.v_offset()) + head * values;
      for (size_t c = 0; c < values; ++c) {
        double known = 0, want = 0;
        for (size_t i = 0; i < keys; ++i) known += s[i * values + c] * removed[i];
        for (size_t i = 0; i < keys; ++i) {
          double& cell = s[i * values + c];
          cell = cell * decay[i] + known * returned[i] + double{k[i]} * v[c];
          want += cell * q[i];
        }
        ASSERT_NEAR(out[r * width() + head * values + c], want, 2e-5 * (1 + std::abs(want)))
            << r << " " << head << " " << c;
      }
    }
  }
}

TEST_P(WkvTest, ChunksHaveTheBitsOfOneRun) { expect_same({9, 0, false}); }
TEST_P(WkvTest, RejectedDraftsLeaveNothing) { expect_same({9, kMaxDrafts, false}); }
TEST_P(WkvTest, DraftPassesLeaveNothing) { expect_same({9, kMaxDrafts, true}); }

TEST_P(WkvTest, RejectedDraftsLeaveNothingWhereLengthsAreUnknown) {
  knows_lengths_ = false;
  expect_same({9, kMaxDrafts, false});
}

INSTANTIATE_TEST_SUITE_P(Sizes, WkvTest,
                         testing::Values(WkvCase{2, 64, 64}, WkvCase{3, 16, 16},
                                         WkvCase{1, 100, 40}));

}  // namespace
}  // namespace foretoken
