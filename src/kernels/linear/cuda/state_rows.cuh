#pragma once
#include "kernels/cuda/common.cuh"
#include "kernels/linear/state_run.h"

// What kernels that go through the runs of recurrent layers have in common.
namespace foretoken::cuda {

// Blocks of the same part of states, which share the runs of a launch. A prime, so that prompts of
// one length are dealt out evenly.
inline constexpr int kMaxRunners = 127;

// The live rows of a launch.
template <class Args>
__device__ StateRows rows_of(const Args& args) {
  return {args.positions, args.row_slot, live_rows(args.counts, RowKind::kToken, 0, args.max_rows)};
}

}  // namespace foretoken::cuda
