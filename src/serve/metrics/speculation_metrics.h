#pragma once
#include <foretoken/request.h>

#include <nlohmann/json.hpp>

namespace foretoken {

// What vLLM's --per-request-spec-decode-metrics summary tells about one choice: {
// "mean_acceptance_length", "draft_acceptance_rate", "acceptance_histogram", "num_spec_steps",
// "num_accepted_draft_tokens", "num_draft_tokens", "num_spec_tokens"}. The histogram counts the
// steps with 0, 1, ... num_spec_tokens accepted drafts. `num_spec_tokens`: most drafts of a step,
// or more where the counts say so.
nlohmann::ordered_json speculation_metrics(const RequestStats& stats, int num_spec_tokens);

}  // namespace foretoken
