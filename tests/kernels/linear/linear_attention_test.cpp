#include "kernels/linear/linear_attention.h"

#include <cmath>
#include <tuple>

#include "kernels/linear/stepped_runs.h"

namespace foretoken {
namespace {

// Key heads, value heads, key_dim, value_dim, channel_decay, scaled, delta.
using AttendCase = std::tuple<int, int, int, int, bool, bool, bool>;

class LinearAttentionTest : public SteppedRowsTest, public testing::WithParamInterface<AttendCase> {
 protected:
  static constexpr int kSlots = 3, kMaxDrafts = 4;
  bool knows_lengths_ = true;

  struct Memory {
    float* states;
    int32_t* committed;
    float* pending;
    int pending_rows;
  };

  static LinearShape shape() {
    const auto [key_heads, value_heads, key_dim, value_dim, channels, scaled, delta] = GetParam();
    return {key_heads, value_heads, key_dim, value_dim, channels, scaled, delta};
  }
  // Keys of length 1 and decays and scales below 1, as gates make them.
  static std::vector<float> sequence(int size, uint64_t seed) {
    const LinearShape s = shape();
    const auto width = static_cast<size_t>(s.row_size());
    auto rows = random_floats(static_cast<size_t>(size) * width, seed);
    for (size_t r = 0; r < static_cast<size_t>(size); ++r) {
      float* row = rows.data() + r * width;
      for (int i = s.k_offset(); i < s.v_offset(); ++i) row[i] /= std::sqrt(float(s.key_dim));
      for (int i = s.decay_offset(); i < s.row_size(); ++i) row[i] = std::exp(-std::abs(row[i]));
    }
    return rows;
  }
  // A slot's memory is what another sequence left, or anything.
  Memory memory() {
    const size_t slots = kSlots + 1, rows = kMaxDrafts + 1;
    const auto update = static_cast<size_t>(shape().update_size());
    return {to_device(std::vector<float>(slots * static_cast<size_t>(shape().state_size()), NAN)),
            to_device(std::vector<int32_t>(slots, 7)),
            to_device(std::vector<float>(slots * rows * update, NAN)), static_cast<int>(rows)};
  }
  std::vector<float> skips() { return random_floats(static_cast<size_t>(shape().value_heads), 77); }
  std::vector<float> launch(const SteppedLaunch& runs, const Memory& memory,
                            const std::vector<std::vector<float>>& data, const float* skip) {
    const LinearShape s = shape();
    const Rows rows = rows_of(runs, kSlots);
    const auto x = packed(runs, static_cast<size_t>(s.row_size()), data);
    const size_t size = static_cast<size_t>(rows.max_rows) * static_cast<size_t>(s.v_size());
    float* out = to_device(std::vector<float>(size, -99));
    linear_attention(queue(),
                     {rows.counts, to_device(x), skip, rows.positions, rows.row_slot,
                      knows_lengths_ ? rows.slots : nullptr, memory.states, memory.committed,
                      memory.pending, out, s, rows.max_rows, memory.pending_rows});
    return read(out, size);
  }
  // All of a sequence in one launch.
  std::vector<float> at_once(const std::vector<float>& data, int size, const float* skip) {
    auto out = launch({{1, 0, size, size + 1, size}}, memory(), {{}, data}, skip);
    for (size_t i = out.size() - static_cast<size_t>(shape().v_size()); i < out.size(); ++i) {
      EXPECT_EQ(out[i], -99) << "behind the live rows";
    }
    return out;
  }
  // In steps, in memory that holds what others left, with the bits of one launch.
  void expect_same(StepChoice choice) {
    constexpr int kSize = 37;
    const std::vector<std::vector<float>> data = {sequence(kSize, 1), sequence(kSize, 2),
                                                  sequence(kSize, 3)};
    float* skip = to_device(skips());
    std::vector<std::vector<float>> want;
    for (const auto& each : data) want.push_back(at_once(each, kSize, skip));
    const Memory kept = memory();
    for (uint64_t seed = 0; seed < 3; ++seed) {
      std::vector<std::vector<SteppedLaunch>> sequences;
      for (int slot = 0; slot < kSlots; ++slot) {
        sequences.push_back(stepped_runs(slot, kSize, choice, 10 * seed + uint64_t(slot)));
      }
      for (const SteppedLaunch& runs : together(sequences)) {
        expect_rows(runs, launch(runs, kept, data, skip), want);
      }
    }
  }
  static void expect_rows(const SteppedLaunch& runs, const std::vector<float>& out,
                          const std::vector<std::vector<float>>& want) {
    const auto width = static_cast<size_t>(shape().v_size());
    size_t row = 0;
    for (const SteppedRun& run : runs) {
      for (int i = 0; i < run.count; ++i, ++row) {
        if (i >= run.right) continue;
        const float* expected = want[size_t(run.slot)].data() + size_t(run.begin + i) * width;
        for (size_t c = 0; c < width; ++c) {
          ASSERT_EQ(out[row * width + c], expected[c])
              << "slot " << run.slot << " position " << run.begin + i << " column " << c;
        }
      }
    }
  }
};

// S and its answers in double precision, a head at a time.
std::vector<double> attended(const LinearShape& s, const std::vector<float>& x, int rows,
                             const std::vector<float>& skip) {
  const int key_dim = s.key_dim, value_dim = s.value_dim;
  std::vector<double> out(static_cast<size_t>(rows * s.v_size()));
  for (int h = 0; h < s.value_heads; ++h) {
    std::vector<double> state(static_cast<size_t>(key_dim * value_dim));
    const int g = h / (s.value_heads / s.key_heads);
    for (int r = 0; r < rows; ++r) {
      const float* row = x.data() + r * s.row_size();
      const float *q = row + g * key_dim, *k = row + s.k_offset() + g * key_dim;
      const float* v = row + s.v_offset() + h * value_dim;
      const float* decay = row + s.decay_offset() + h * (s.channel_decay ? key_dim : 1);
      const double scale = s.scaled ? row[s.scale_offset() + h] : 1;
      for (int j = 0; j < value_dim; ++j) {
        double known = 0, answer = 0;
        for (int i = 0; i < key_dim; ++i) {
          double& cell = state[static_cast<size_t>(i * value_dim + j)];
          cell *= decay[s.channel_decay ? i : 0];
          known += cell * k[i];
        }
        for (int i = 0; i < key_dim; ++i) {
          double& cell = state[static_cast<size_t>(i * value_dim + j)];
          cell += k[i] * scale * (v[j] - (s.delta ? known : 0));
          answer += cell * q[i];
        }
        out[static_cast<size_t>(r * s.v_size() + h * value_dim + j)] =
            answer + (skip.empty() ? 0 : double{skip[static_cast<size_t>(h)]} * v[j]);
      }
    }
  }
  return out;
}

TEST_P(LinearAttentionTest, MatchesDouble) {
  constexpr int kSize = 25;
  const auto data = sequence(kSize, 5);
  for (const bool has_skip : {false, true}) {
    const auto skip = has_skip ? skips() : std::vector<float>{};
    const auto out = at_once(data, kSize, has_skip ? to_device(skip) : nullptr);
    const auto want = attended(shape(), data, kSize, skip);
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(out[i], want[i], 1e-5 * (1 + std::abs(want[i]))) << i;
    }
  }
}

TEST_P(LinearAttentionTest, ChunksHaveTheBitsOfOneRun) { expect_same({9, 0, false}); }
TEST_P(LinearAttentionTest, RejectedDraftsLeaveNothing) { expect_same({9, kMaxDrafts, false}); }
TEST_P(LinearAttentionTest, DraftPassesLeaveNothing) { expect_same({9, kMaxDrafts, true}); }

TEST_P(LinearAttentionTest, RejectedDraftsLeaveNothingWhereLengthsAreUnknown) {
  knows_lengths_ = false;
  expect_same({9, kMaxDrafts, false});
}

INSTANTIATE_TEST_SUITE_P(Forms, LinearAttentionTest,
                         testing::Values(AttendCase{2, 4, 16, 32, false, true, true},
                                         AttendCase{1, 2, 128, 128, false, true, true},
                                         AttendCase{2, 2, 24, 40, true, true, true},
                                         AttendCase{1, 6, 256, 64, false, true, false},
                                         AttendCase{3, 3, 20, 5, false, false, false}));

}  // namespace
}  // namespace foretoken
