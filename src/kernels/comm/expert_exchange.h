#pragma once
#include <cstdint>

#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Ops in which the queues of data parallel engines meet inside of a mixture, so that each rank
// computes its experts for the rows of all. Every rank enqueues them in the same order, a return
// behind each dispatch; live counts may differ, and a rank without rows takes part all the same.
// `comm` is Communicator::handle of these ranks, whose collectives they are.

// The live rows of all ranks in device memory, those of one rank behind those of the rank before
// it. Room for capacity_rows rows of each rank.
struct ExchangedRows {
  StepCounts* counts;  // num_rows: the rows of all ranks; the rest is 0
  int32_t* begins;     // [ranks + 1]: rank r has rows [begins[r], begins[r + 1])
  void* x;             // [ranks * capacity_rows, hidden] of dtype
  int32_t* ids;        // [ranks * capacity_rows, top_k]
  float* weights;      // [ranks * capacity_rows, top_k]
};

// Example: rank 0 has 3 live rows, rank 1 none, rank 2 two. `begins` is 0, 3, 3, 5 on all ranks, x
// has rank 0's rows in [0, 3) and rank 2's in [3, 5), and counts.num_rows is 5. Each rank adds up
// what its own experts make of all five; a return brings rank 0 the sums of rows 0 to 2 of every
// rank.

// Each rank's live rows, with the experts that they chose and their weights, become those of all
// ranks. A device may leave out what is behind a row of which the receiver has no expert.
struct DispatchRowsArgs {
  static constexpr Op kOp = Op::kDispatchRows;
  const void* comm;
  const StepCounts* counts;  // of this rank's rows
  const void* x;             // [max_rows, hidden] of dtype
  const int32_t* ids;        // [max_rows, top_k]
  const float* weights;      // [max_rows, top_k]
  ExchangedRows out;
  int32_t max_rows;       // of each rank in this step, the same on all
  int32_t capacity_rows;  // of any rank in any step
  int32_t hidden;         // a multiple of 8
  int32_t top_k;
  DType dtype;  // kF32 or kBF16
};

void dispatch_rows(Queue& queue, const DispatchRowsArgs& args);

// What the ranks' experts made of each row comes back to the row's rank, and is added in the order
// of ranks: sum = shared * shared_scale (or 0), then sum += of rank 0, 1, ...; out = sum, or out +=
// sum with `add`. shared_scale is the sigmoid of shared_gate where that is given, else 1.
struct ReturnRowsArgs {
  static constexpr Op kOp = Op::kReturnRows;
  const void* comm;
  const int32_t* begins;     // ExchangedRows::begins
  const float* sums;         // [ranks * capacity_rows, hidden] of this rank's experts, for all rows
  float* scratch;            // [2 * max_rows, hidden]
  const float* shared;       // [max_rows, hidden] or null
  const float* shared_gate;  // [max_rows] or null
  float* out;                // [max_rows, hidden]
  int32_t max_rows;          // as of the dispatch
  int32_t hidden;            // a multiple of 8
  int32_t add = 0;
};

void return_rows(Queue& queue, const ReturnRowsArgs& args);

}  // namespace foretoken
