#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "kernels/step_types.h"

// How the rows of an op make runs, and what a run of rows does to a state that keeps rows which may
// be taken back apart (kernels/linear/linear_attention.h).

namespace foretoken {

// Token rows of an op.
struct StateRows {
  const int32_t* positions;  // of each
  const int32_t* row_slot;   // of each
  int32_t count;

  // Whether `row`, if there is one, goes on with the run of the row before it.
  FT_HD bool continues(int32_t row) const {
    return row > 0 && row < count && row_slot[row] == row_slot[row - 1] &&
           positions[row] == positions[row - 1] + 1;
  }
  // Behind the last row of the run that begins with `row`.
  FT_HD int32_t run_end(int32_t row) const {
    int32_t end = row + 1;
    while (continues(end)) ++end;
    return end;
  }
  int64_t num_runs() const {
    int64_t runs = 0;
    for (int32_t row = 0; row < count; ++row) runs += continues(row) ? 0 : 1;
    return runs;
  }
  // Whether `other`, if there is one, is in the run of `row`, for rows whose runs follow.
  FT_HD bool same_run(int32_t row, int32_t other) const {
    return other >= 0 && other < count && row_slot[other] == row_slot[row] &&
           positions[other] - positions[row] == other - row;
  }
};

// Positions of a run and of the state that it goes on from.
struct StateRun {
  int32_t from;   // the state behind so many positions is kept; 0: it is zero
  int32_t begin;  // of the run; updates of [from, begin) are pending
  int32_t end;    // of the run
  int32_t keep;   // the state behind so many positions is to be kept, at least `from`
};

// Known positions of a slot, of whose rows those before `end` are in question: the run's, or those
// up to one of them. Without slots `pending_rows` of a run may be taken back.
FT_HD inline int32_t known_len(const SlotState* slots, int32_t slot, int32_t end,
                               int32_t pending_rows) {
  return slots != nullptr ? slots[slot].len : end - pending_rows + 1;
}

// The positions whose state may be kept among those before `end`, of `len` known ones.
FT_HD inline int32_t lasting(int32_t end, int32_t len) { return end < len - 1 ? end : len - 1; }

FT_HD inline StateRun state_run(int32_t begin, int32_t num_rows, int32_t committed, int32_t len,
                                int32_t pending_rows) {
  const bool follows = committed <= begin && begin - committed <= pending_rows;
  const int32_t from = begin == 0 ? 0 : follows ? committed : begin;
  const int32_t end = begin + num_rows, last = lasting(end, len);
  return {from, begin, end, last > from ? last : from};
}

// Whether the update of `row` is pending behind the op.
FT_HD inline bool stays_pending(const StateRows& rows, int32_t row, int32_t len,
                                int32_t pending_rows) {
  return rows.positions[row] >= len - 1 && !rows.same_run(row, row + pending_rows);
}

// StateRun::keep of the run whose last row is `row`.
FT_HD inline int32_t kept_behind(const StateRows& rows, int32_t row, int32_t committed,
                                 int32_t len) {
  const int32_t position = rows.positions[row];
  const int32_t from = rows.same_run(row, row - position) ? 0 : committed;
  const int32_t last = lasting(position + 1, len);
  return last > from ? last : from;
}

}  // namespace foretoken
