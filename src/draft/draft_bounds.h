#pragma once
#include "base/result.h"
#include "draft/registry.h"

namespace foretoken {

// Positions that a drafter computes: the least of the configuration's max_model_len, what its model
// allows (`own`) and the engine's. InvalidArgument when the configuration asks for more than the
// others have.
Result<int> draft_max_len(const DrafterContext& context, int own);

// Whether drafts are sampled (draft_sample_method probabilistic) rather than the likeliest.
// InvalidArgument for another word.
Result<bool> samples_drafts(const SpeculativeConfig& config);

}  // namespace foretoken
