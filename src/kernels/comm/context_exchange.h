#pragma once
#include <cstdint>

#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Ops in which ranks meet that share the positions of sequences (KvLayer::context_size), for the
// live token rows. Collectives as of kernels/comm/collectives.h, of which every rank of `comm`
// takes part in one of these groups.

// Ranks [first, first + size) of a communicator, and which of them this one is.
struct ContextRanks {
  const void* comm = nullptr;  // Communicator::handle
  int32_t first = 0;
  int32_t rank = 0;
  int32_t size = 1;

  bool are_several() const { return size > 1; }
};

// out[row, piece, r] = piece `piece` of row from(row) of rank r: what each rank has a part of comes
// together on all of them. from(row) = from[row], or row without.
struct GatherPartsArgs {
  static constexpr Op kOp = Op::kGatherParts;
  const StepCounts* counts;
  const void* in;       // rows of pieces * piece_bytes bytes
  const int32_t* from;  // [max_rows] or null
  void* out;            // [max_rows, pieces, ranks.size] of piece_bytes bytes
  ContextRanks ranks;
  int32_t max_rows;
  int32_t pieces;
  int32_t piece_bytes;  // a multiple of 4
};

void gather_parts(Queue& queue, const GatherPartsArgs& args);

// Example of a fold: over its own positions rank 0 saw the largest score 2, the divisor 3 and the
// weighted sum 6, rank 1 the largest score 5, 1 and 4. Relative to 5, rank 0's count exp(-3) =
// 0.05: the result is (0.05 * 6 + 4) / (0.05 * 3 + 1) = 3.74, as one rank with all positions has
// it.

// Attention of this rank's heads over all positions, from what each rank saw of its own: states
// are folded in the order of ranks, sinks join the divisor last. What no rank saw anything for
// becomes zero.
struct MergePartialsArgs {
  static constexpr Op kOp = Op::kMergePartials;
  const StepCounts* counts;
  const float* states;  // of AttentionArgs, whose part r is of rank r's heads
  void* out;            // [max_rows, num_heads * value_size] of dtype
  const float* sinks;   // [num_heads] or null
  ContextRanks ranks;
  int32_t max_rows;
  int32_t num_heads;  // of this rank
  int32_t value_size;
  DType dtype;  // kF32 or kBF16
};

void merge_partials(Queue& queue, const MergePartialsArgs& args);

}  // namespace foretoken
