#pragma once
#include <algorithm>
#include <random>
#include <vector>

#include "kernels/step_types.h"
#include "support/row_ops.h"

namespace foretoken {

// Rows of one sequence in one launch.
struct SteppedRun {
  int slot;
  int begin;  // position of the first
  int count;
  int len;    // known tokens of the slot
  int right;  // rows that the sequence keeps; those behind them are drafts that turn out wrong
};

using SteppedLaunch = std::vector<SteppedRun>;

// How a sequence comes in steps: prompts in chunks, drafts behind the last known row, some of which
// are taken back, and now and then all of a step's.
struct StepChoice {
  int max_chunk;
  int max_draft_tokens;
  bool by_passes;  // each draft in a launch of its own
};

// The launches of a sequence of `size` positions, from 0 on.
inline std::vector<SteppedLaunch> stepped_runs(int slot, int size, StepChoice choice,
                                               uint64_t seed) {
  std::mt19937_64 generator(seed);
  const auto at_most = [&](int most) {
    return static_cast<int>(generator() % static_cast<uint64_t>(most + 1));
  };
  std::vector<SteppedLaunch> launches;
  int len = 1 + at_most(size - 1), computed = 0;
  while (computed < size) {
    const int known = std::min(len - computed, 1 + at_most(choice.max_chunk - 1));
    if (computed + known < len || len == size) {
      launches.push_back({{slot, computed, known, len, known}});
      computed += known;
      continue;
    }
    const int drafts = at_most(choice.max_draft_tokens), room = size - 1 - len;
    const int accepted = std::min({at_most(drafts), drafts, room});
    const int together = choice.by_passes ? 0 : drafts;
    launches.push_back(
        {{slot, computed, known + together, len, known + std::min(together, accepted)}});
    for (int i = 0; i < drafts - together; ++i) {
      launches.push_back({{slot, len + i, 1, len, i < accepted ? 1 : 0}});
    }
    len += at_most(4) == 0 ? 0 : accepted + 1;
    computed = len - 1;
  }
  return launches;
}

// Those of several sequences side by side.
inline std::vector<SteppedLaunch> together(
    const std::vector<std::vector<SteppedLaunch>>& sequences) {
  std::vector<SteppedLaunch> launches;
  for (const auto& sequence : sequences) {
    launches.resize(std::max(launches.size(), sequence.size()));
    for (size_t i = 0; i < sequence.size(); ++i) {
      launches[i].insert(launches[i].end(), sequence[i].begin(), sequence[i].end());
    }
  }
  return launches;
}

// The rows of a launch as ops find them.
class SteppedRowsTest : public RowOpTest {
 protected:
  struct Rows {
    const StepCounts* counts;
    const int32_t* positions;
    const int32_t* row_slot;
    const SlotState* slots;
    int max_rows;  // one more than are live
  };
  Rows rows_of(const SteppedLaunch& launch, int num_slots) {
    std::vector<int32_t> positions, row_slot;
    std::vector<SlotState> slots(static_cast<size_t>(num_slots) + 1);
    for (const SteppedRun& run : launch) {
      slots[static_cast<size_t>(run.slot)].len = run.len;
      for (int i = 0; i < run.count; ++i) {
        positions.push_back(run.begin + i);
        row_slot.push_back(run.slot);
      }
    }
    const int count = static_cast<int>(positions.size());
    positions.push_back(0);
    row_slot.push_back(num_slots);
    return {counts(count), to_device(positions), to_device(row_slot), to_device(slots), count + 1};
  }
  // Rows of `width` floats: of each sequence `data[slot]`, by position, where they are right, else
  // others.
  static std::vector<float> packed(const SteppedLaunch& launch, size_t width,
                                   const std::vector<std::vector<float>>& data) {
    std::vector<float> out;
    for (const SteppedRun& run : launch) {
      for (int i = 0; i < run.count; ++i) {
        const float* row =
            data[static_cast<size_t>(run.slot)].data() + static_cast<size_t>(run.begin + i) * width;
        if (i < run.right) {
          out.insert(out.end(), row, row + width);
        } else {
          out.insert(out.end(), width, 0.75f);
        }
      }
    }
    out.insert(out.end(), width, 1e30f);
    return out;
  }
};

}  // namespace foretoken
