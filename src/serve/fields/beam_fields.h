#pragma once
#include <foretoken/request.h>

#include <optional>

#include "serve/fields/json_fields.h"

namespace foretoken {

// "use_beam_search" and "length_penalty" of a body: vLLM's search for the likeliest texts, which
// goes by the model's own log-probabilities alone. The penalty where beams are asked for, with a
// warning for each field of `sampling` that has no effect on them; its temperature, which has none
// either, becomes 1, since at 0 there may be but one choice of others.
std::optional<float> read_beams(JsonFields& fields, SamplingParams* sampling);

}  // namespace foretoken
