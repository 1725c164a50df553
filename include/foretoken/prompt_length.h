#pragma once
#include <foretoken/status.h>

#include <cstddef>

namespace foretoken {

// The error of a prompt that leaves no room for an output. Agents shorten their conversation when
// they know it by its words, so that it holds those of Anthropic's API ("prompt is too long: N
// tokens > M maximum") and of OpenAI's and vLLM's ("maximum context length is M tokens").
Status prompt_too_long(size_t num_tokens, int max_model_len);

// Whether `status` is such an error.
bool is_prompt_too_long(const Status& status);

}  // namespace foretoken
