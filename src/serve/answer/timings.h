#pragma once
#include <foretoken/request.h>

#include <nlohmann/json.hpp>

#include "serve/answer/output_sum.h"

namespace foretoken {

// llama.cpp's "timings" of one choice: {"cache_n", "prompt_n", "prompt_ms", "prompt_per_token_ms",
// "prompt_per_second", "predicted_n", "predicted_ms", ...}, with "draft_n" and "draft_n_accepted"
// where tokens were drafted. The prompt's time goes from the first step that had it to the first
// token; `submitted`: when the engine got the request.
nlohmann::ordered_json timings_json(const RequestStats& stats, const OutputTimes& times,
                                    OutputTimes::Time submitted);

}  // namespace foretoken
