#pragma once
#include <cstdint>

#include "device/queue.h"
#include "kernels/comm/collectives.h"
#include "kernels/gemm/head_argmax.h"
#include "kernels/logits_row.h"
#include "kernels/op.h"
#include "kernels/sample_math.h"
#include "kernels/step_types.h"

namespace foretoken {

// Ops in which ranks that each have columns of the logits sample together, with the ids that
// `sample` gives for the whole rows, of which no rank needs all: deal_logits, sample_parts and
// gather_samples, in this order over the same rows. deal_logits and gather_samples are collectives
// as of collectives.h.
//
// Where every live row takes its likeliest id the ranks compare the best of their columns. Where
// some row is drawn all of them are dealt out: a rank gets the other ranks' columns of its rows
// alone, and samples these. The queue sees which, and all ranks see the same.

// What the three have in common.
struct SharedLogits {
  const void* comm;     // Communicator::handle
  StepTensors tensors;  // `sampled` is written at row_offset + i
  BatchState batch;
  const float* part;  // [max_rows, this rank's columns of vocab]
  float* dealt;       // [rows_each(), vocab]
  uint64_t* keys;     // [max_rows]
  int32_t row_offset;
  int32_t max_rows;
  int32_t vocab;  // cut over the ranks by column_part
  int32_t rank;
  int32_t size;

  // Dealt out, rank r has rows [r * rows_each(), ...), as far as there are.
  FT_HD int32_t rows_each() const { return (max_rows + size - 1) / size; }
  FT_HD int32_t rows_of(int32_t r, int32_t rows) const {
    const int32_t left = rows - r * rows_each();
    return left < 0 ? 0 : left < rows_each() ? left : rows_each();
  }
};

// Example: 5 rows on 2 ranks, one of them with a temperature. Rank 0 samples rows 0 to 2, for which
// rank 1 gives it its columns, and rank 1 rows 3 and 4; then each tells the other its ids.

// Whether row i takes its likeliest id, or a known one.
FT_HD inline bool takes_likeliest(const SharedLogits& a, int32_t i) {
  const LogitsRow at = logits_row(a.tensors, a.batch.slots, a.row_offset + i);
  return at.scored || a.batch.params[at.slot].temperature <= 0.0f;
}

// Keys of a row, of which the highest of all ranks says what it samples: argmax_key of a logit and
// its id; of an id that was drawn above all of these; of a row without a valid probability the
// highest.
inline constexpr uint64_t kNoSampleKey = ~uint64_t{0};
FT_HD inline uint64_t drawn_key(int32_t id) {
  return id < 0 ? kNoSampleKey : argmax_key(0xfffffffeu, id);
}
// What row i samples whose highest key is `best`.
FT_HD inline int32_t sampled_of(const SharedLogits& a, int32_t i, uint64_t best) {
  const LogitsRow at = logits_row(a.tensors, a.batch.slots, a.row_offset + i);
  if (at.scored) return history_id(a.batch, at.slot, at.position + 1);
  if (best == kNoSampleKey || best >> 32 <= sample_math::kKeyOfMinusInf) return -1;
  return row_of_argmax_key(best);
}

// dealt = this rank's rows, where some row is drawn.
struct DealLogitsArgs {
  static constexpr Op kOp = Op::kDealLogits;
  SharedLogits of;
};

void deal_logits(Queue& queue, const DealLogitsArgs& args);

// keys = of each live row what this rank knows.
struct SamplePartsArgs {
  static constexpr Op kOp = Op::kSampleParts;
  SharedLogits of;
};

void sample_parts(Queue& queue, const SamplePartsArgs& args);

// tensors.sampled = the ids that the ranks' keys say.
struct GatherSamplesArgs {
  static constexpr Op kOp = Op::kGatherSamples;
  SharedLogits of;
};

void gather_samples(Queue& queue, const GatherSamplesArgs& args);

}  // namespace foretoken
