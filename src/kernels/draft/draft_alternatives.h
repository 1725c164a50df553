#pragma once
#include <cstdint>

#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Ids beside a draft that branches may have in its place.
inline constexpr int kDraftAlternatives = 4;

// An id of a logits row of a draft pass and its chance by the drafter's own distribution, softmax
// of the row, in 1/kSureDraft. id -1: there is none.
struct DraftAlternative {
  int32_t id;
  int32_t chance;
};

// For each live logits row the drafted id, and behind it the kDraftAlternatives likeliest other
// ids, from the likeliest down, ties to the lowest id; ids whose logit is not finite are none. A
// row without a draft (sampled -1) has none at all. Chances are rounded down, and their bits are
// those of the device.
struct DraftAlternativesArgs {
  static constexpr Op kOp = Op::kDraftAlternatives;
  const float* logits;  // [max_rows, vocab]
  const StepCounts* counts;
  const int32_t* sampled;  // by logits row
  DraftAlternative* out;   // [logits rows, kDraftAlternatives + 1]
  int32_t row_offset;      // of the first row of `logits`
  int32_t max_rows;
  int32_t vocab;
};

void draft_alternatives(Queue& queue, const DraftAlternativesArgs& args);

}  // namespace foretoken
