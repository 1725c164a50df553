#include "text/chat_content.h"

#include <nlohmann/json.hpp>

namespace foretoken {
namespace {

// The order of keys is what templates print.
using json = nlohmann::ordered_json;

Result<std::string> joined_text(const json& parts) {
  std::string text;
  for (const json& part : parts) {
    const auto found = part.is_object() ? part.find("text") : part.end();
    const bool has_text = part.is_object() && found != part.end() && found->is_string();
    if (!has_text && !part.is_string()) {
      return invalid_argument(
          "a message holds a part that is not text, and the model's chat template takes text only; "
          "send {\"type\": \"text\", \"text\": ...} parts");
    }
    if (&part != &parts.front()) text += '\n';
    text += has_text ? found->get<std::string>() : part.get<std::string>();
  }
  return text;
}

}  // namespace

Result<std::string> with_content_format(std::string_view messages_json, ContentFormat format) {
  json messages = json::parse(messages_json, nullptr, /*allow_exceptions=*/false);
  if (!messages.is_array()) {
    return invalid_argument("the messages must be a JSON array of {\"role\", \"content\"}");
  }
  for (json& message : messages) {
    const auto content = message.is_object() ? message.find("content") : message.end();
    if (!message.is_object() || content == message.end()) continue;
    if (format == ContentFormat::kOpenAi && content->is_string()) {
      *content = json::array({{{"type", "text"}, {"text", *content}}});
    } else if (format == ContentFormat::kString && content->is_array()) {
      FT_ASSIGN_OR_RETURN(*content, joined_text(*content));
    }
  }
  return messages.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace foretoken
