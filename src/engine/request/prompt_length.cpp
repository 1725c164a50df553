#include <foretoken/prompt_length.h>

#include <string>

#include "base/result.h"
#include "text/utf8_stream.h"

namespace foretoken {
namespace {

constexpr const char* kBegin = "prompt is too long: ";

// A part of so many bytes for each token that fits is counted first: it holds more than twice of
// them unless a token has 8 bytes in the mean, where texts have 2 to 5.
constexpr size_t kPartBytesPerToken = 16;

}  // namespace

Status prompt_too_long(size_t num_tokens, int max_model_len) {
  const std::string most = std::to_string(max_model_len);
  return invalid_argument(kBegin + std::to_string(num_tokens) + " tokens > " + most +
                          " maximum. This model's maximum context length is " + most +
                          " tokens for prompt and output together; shorten the prompt, set "
                          "truncate_prompt_tokens or raise --max-model-len");
}

Status encode_prompt(const std::string& text, int max_model_len, const EncodeText& encode,
                     std::vector<int32_t>* ids) {
  const auto most = static_cast<size_t>(max_model_len);
  size_t part = most * kPartBytesPerToken;
  if (part < text.size()) {
    while (part > 0 && is_utf8_continuation(text[part])) --part;
    FT_RETURN_IF_ERROR(encode(text.substr(0, part), ids));
    if (ids->size() > 2 * most) {
      const Status error = prompt_too_long(ids->size(), max_model_len);
      ids->clear();
      return invalid_argument(error.message() + " (counted in the first " + std::to_string(part) +
                              " of its " + std::to_string(text.size()) + " bytes)");
    }
  }
  return encode(text, ids);
}

bool is_prompt_too_long(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument && status.message().starts_with(kBegin);
}

}  // namespace foretoken
