#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace foretoken {

// What a template expects as the content of a message.
enum class ContentFormat {
  kString,  // text
  kOpenAi,  // a list of parts: [{"type": "text", "text": ...}, ...]
};

// The messages with every content in `format`: text becomes one part, the texts of parts are joined
// by line breaks (vLLM's --chat-template-content-format). kInvalidArgument when the JSON is not an
// array, or when a part is not text and `format` has no room for it.
Result<std::string> with_content_format(std::string_view messages_json, ContentFormat format);

}  // namespace foretoken
