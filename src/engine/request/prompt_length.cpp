#include <foretoken/prompt_length.h>

#include <string>

#include "base/result.h"

namespace foretoken {
namespace {

constexpr const char* kBegin = "prompt is too long: ";

}  // namespace

Status prompt_too_long(size_t num_tokens, int max_model_len) {
  const std::string most = std::to_string(max_model_len);
  return invalid_argument(kBegin + std::to_string(num_tokens) + " tokens > " + most +
                          " maximum. This model's maximum context length is " + most +
                          " tokens for prompt and output together; shorten the prompt, set "
                          "truncate_prompt_tokens or raise --max-model-len");
}

bool is_prompt_too_long(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument && status.message().starts_with(kBegin);
}

}  // namespace foretoken
