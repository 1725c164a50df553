#pragma once
#include <foretoken/request.h>

#include "base/result.h"
#include "serve/fields/json_fields.h"

namespace foretoken {

// Reads the fields of the table (config/sampling_fields.h) that are there, by their names, over
// `*sampling`. The counts `logprobs` and `prompt_logprobs` are left out: the APIs spell them
// differently. A seed of -1 means none, as in vLLM.
void read_sampling_fields(JsonFields& fields, SamplingParams* sampling);

// "logprobs" or "prompt_logprobs" as a number of alternatives; false is none of them.
void read_logprob_count(JsonFields& fields, const char* name, std::optional<int>* count);
// Both.
void read_logprob_counts(JsonFields& fields, SamplingParams* sampling);

// The speculation of one request over `*speculative`: {"enabled", "num_speculative_tokens",
// "method"}; any other field is an error, as it would leave the request without what was asked for.
// Messages start with `what`.
Status read_speculative_params(const nlohmann::ordered_json& object, const std::string& what,
                               SpeculativeParams* speculative);

// The fields of a Request beside its prompt and its sampling: "add_special_tokens",
// "truncate_prompt_tokens", "priority", "cache_salt", "flex_mask", "flex_score" and "speculative",
// an object as above.
void read_request_fields(JsonFields& fields, Request* request);

// OpenAI's "prediction", {"type": "content", "content": a text or parts of it}.
void read_prediction(JsonFields& fields, std::string* prediction);

}  // namespace foretoken
