#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Step parts 6b and 7: verification by the rule `coupled` and commit, one span at a time.
// A span without sampling rows: computed += its rows. One whose slot pools ends with kStop, nothing
// committed, when it reaches the last prompt token. Otherwise, with logits rows 0..d behind the
// scored ones and drafts x_1..x_d:
//   a = largest number with x_i == sampled row i-1 for all i <= a; the a + 1 ids sampled at rows
//   0..a are committed, cut after the first stop id (finish = kStop, the id is kept) or when len
//   reaches max_len (kLength); stop wins over length; a sampled -1 ends the sequence with kError,
//   ids before it kept.
//   The ids are appended to the token pages (raising the headers' counts), len += committed,
//   computed = len - 1, num_drafts = 0, finished = finish.
// results[i] tells what happened to span i; num_accepted = min(a, committed).
// A span of a finished slot reports nothing committed, nothing drafted and kNone.
struct CommitArgs {
  static constexpr Op kOp = Op::kCommit;
  const void* plan;
  PlanLimits limits;
  BatchState batch;
  StepTensors tensors;
  void* result;  // device copy of the result entry (result_view)
  ResultLimits result_limits;
};

void commit(Queue& queue, const CommitArgs& args);

}  // namespace foretoken
