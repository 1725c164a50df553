#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Step part 5, in place, for the live logits rows whose slot shapes its logits and which are not
// scored rows. The history of a row at position p is the slot's known tokens and then its drafts,
// positions 0 .. p; ids from prompt_len on are output. In this order:
//  1. has_allowed_ids: ids without their bit in allowed_ids become -inf;
//  2. bad words: where the output ends in all but the last id of one, that last id becomes -inf;
//  3. logit_bias is added;
//  4. repetition_penalty r (Keskar et al. 2019), once for each id of the history: l / r where
//     l > 0, else l * r;
//  5. presence_penalty, once for each id of the output, is taken away; then frequency_penalty once
//     for each of its occurrences, one subtraction after the other (so that every order of equal
//     subtractions gives the same bits).
// The history comes through the block table; nothing is kept from step to step.
struct ShapeLogitsArgs {
  static constexpr Op kOp = Op::kShapeLogits;
  float* logits;  // [max_rows, vocab]
  StepTensors tensors;
  BatchState batch;
  uint32_t* seen;  // [max_rows, 2, mask_words] scratch
  int32_t row_offset;
  int32_t max_rows;
  int32_t vocab;
};

void shape_logits(Queue& queue, const ShapeLogitsArgs& args);

}  // namespace foretoken
