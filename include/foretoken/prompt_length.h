#pragma once
#include <foretoken/status.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace foretoken {

// The error of a prompt that leaves no room for an output. Agents shorten their conversation when
// they know it by its words, so that it holds those of Anthropic's API ("prompt is too long: N
// tokens > M maximum") and of OpenAI's and vLLM's ("maximum context length is M tokens").
Status prompt_too_long(size_t num_tokens, int max_model_len);

// The ids of `text` by `encode`, or the error above. A text of many times the bytes that
// `max_model_len` tokens have is not read whole for that: its tokens would take some hundred times
// its size.
using EncodeText = std::function<Status(const std::string& text, std::vector<int32_t>* ids)>;
Status encode_prompt(const std::string& text, int max_model_len, const EncodeText& encode,
                     std::vector<int32_t>* ids);

// Whether `status` is such an error.
bool is_prompt_too_long(const Status& status);

}  // namespace foretoken
