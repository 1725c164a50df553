#include "kernels/linear/shift_rows.h"

#include "kernels/linear/stepped_runs.h"
#include "support/random_data.h"

namespace foretoken {
namespace {

using ShiftSequences = std::vector<std::vector<float>>;

class ShiftRowsTest : public SteppedRowsTest {
 protected:
  static constexpr int kSlots = 3, kMaxDrafts = 4, kRowsEach = 23, kMixed = 37, kMixes = 3,
                       kStride = 80;

  std::vector<float> launch(const SteppedLaunch& runs, float* history, const ShiftSequences& data) {
    const Rows rows = rows_of(runs, kSlots);
    const size_t size = size_t(kMixes) * size_t(rows.max_rows) * kMixed;
    float* out = to_device(std::vector<float>(size, -99));
    shift_rows(queue(), {.counts = rows.counts,
                         .x = to_device(packed(runs, kMixed, data)),
                         .mixes = to_device(mixes_),
                         .positions = rows.positions,
                         .row_slot = rows.row_slot,
                         .history = history + kMixed,
                         .out = out,
                         .num_mixes = kMixes,
                         .size = kMixed,
                         .max_rows = rows.max_rows,
                         .history_rows = kMaxDrafts + 2,
                         .history_stride = kStride,
                         .dtype = DType::kF32});
    return read(out, size);
  }

  const std::vector<float> mixes_ = random_floats(size_t{kMixes} * kMixed, 3);
};

TEST_F(ShiftRowsTest, MixesRowsWithThoseBeforeThemWhateverTheSteps) {
  ShiftSequences all;
  for (uint64_t slot = 0; slot < kSlots; ++slot) {
    all.push_back(random_floats(size_t{kRowsEach} * kMixed, 10 + slot));
  }
  float* history =
      to_device(std::vector<float>(size_t{kSlots + 1} * (kMaxDrafts + 2) * kStride, NAN));
  for (const bool passes : {false, true}) {
    std::vector<std::vector<SteppedLaunch>> sequences;
    for (int slot = 0; slot < kSlots; ++slot) {
      sequences.push_back(stepped_runs(slot, kRowsEach, {9, kMaxDrafts, passes}, uint64_t(slot)));
    }
    for (const SteppedLaunch& runs : together(sequences)) {
      const auto out = launch(runs, history, all);
      const size_t max_rows = out.size() / (size_t{kMixes} * kMixed);
      size_t row = 0;
      for (const SteppedRun& run : runs) {
        for (int i = 0; i < run.count; ++i, ++row) {
          if (i >= run.right) continue;
          const float* x = all[size_t(run.slot)].data() + size_t(run.begin + i) * kMixed;
          for (size_t at = 0; at < size_t{kMixes} * kMixed; ++at) {
            const size_t c = at % kMixed, mix = at / kMixed;
            const float before = run.begin + i > 0 ? *(x + c - kMixed) : 0.0f;
            ASSERT_NEAR(out[(mix * max_rows + row) * kMixed + c],
                        x[c] + (before - x[c]) * mixes_[at], 1e-6)
                << run.slot << " " << run.begin + i << " " << at;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace foretoken
