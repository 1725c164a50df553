#pragma once
#include <cstdint>

#include "kernels/draft/prediction_match.h"
#include "kernels/step_types.h"

// Where a sequence's own text, or the prediction of its output, goes on as its end does: what the
// ops that look texts up share.

namespace foretoken::cpu {

// The slot's text beside its prediction.
prediction_match::Predicted predicted_of(const BatchState& batch, int32_t slot);

// The key of the best place in the slot's prediction (kernels/draft/prediction_match.h), or 0
// without one whose common suffix has at least `least` tokens.
uint64_t find_predicted(const BatchState& batch, int32_t slot,
                        const prediction_match::Predicted& predicted, int32_t least);

// Position j of a text t[0, len), and the tokens of the common suffix of t[..j] and t[..len - 1].
struct OwnMatch {
  int32_t position = -1;  // -1: there is none
  int32_t length = 0;
};

// The longest match before the last token, counted up to max_n tokens and the latest among equals,
// if it has at least `least`.
OwnMatch find_own(const BatchState& batch, int32_t slot, int32_t least, int32_t max_n);

// Drafts `count` tokens: what follows in the prediction, as far as it goes, or in the text, and
// where that passes the end, the draft already made at that place.
void draft_predicted(SlotState& state, const prediction_match::Predicted& predicted, uint64_t key,
                     int32_t count);
void draft_own(const BatchState& batch, int32_t slot, const OwnMatch& match, int32_t count);

}  // namespace foretoken::cpu
