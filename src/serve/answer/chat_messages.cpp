#include "serve/answer/chat_messages.h"

#include <string>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// Parts as {"type": "text", "text": ...}, which may be given as bare strings.
Result<json> text_parts(const json& parts, const std::string& where) {
  json texts = json::array();
  for (const json& part : parts) {
    if (part.is_string()) {
      texts.push_back({{"type", "text"}, {"text", part}});
      continue;
    }
    if (!part.is_object() || !part.contains("type") || !part["type"].is_string()) {
      return invalid_argument(where +
                              ": each part of 'content' must be {\"type\": \"text\", "
                              "\"text\": ...}");
    }
    if (part["type"] != "text" || !part.contains("text") || !part["text"].is_string()) {
      return invalid_argument(where + ": 'content' parts of type '" +
                              part["type"].get<std::string>() + "' are not supported; give text");
    }
    texts.push_back(part);
  }
  return texts;
}

// An answer may have no words beside its calls, reasoning or refusal, and a tool no result.
bool may_lack_content(const json& message) {
  return message["role"] == "assistant" || message["role"] == "tool";
}

}  // namespace

Result<json> normalise_messages(const json& messages) {
  if (!messages.is_array() || messages.empty()) {
    return invalid_argument("'messages' must be an array of {\"role\", \"content\"}, not empty");
  }
  json normal = json::array();
  for (const json& message : messages) {
    const std::string where = "message " + std::to_string(normal.size() + 1);
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string()) {
      return invalid_argument(where +
                              ": each of 'messages' must be an object with a \"role\" string");
    }
    json copy = message;
    const auto content = copy.find("content");
    const bool text = content != copy.end() && content->is_string();
    if (content != copy.end() && content->is_array()) {
      FT_ASSIGN_OR_RETURN(*content, text_parts(*content, where));
    } else if (!text && content != copy.end() && !content->is_null()) {
      return invalid_argument(where + ": 'content' must be a string or an array of parts");
    } else if (!text && !may_lack_content(copy)) {
      return invalid_argument(where + ": 'content' is missing");
    }
    normal.push_back(std::move(copy));
  }
  return normal;
}

}  // namespace foretoken
