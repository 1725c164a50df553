#include "text/chat_words.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

}  // namespace

std::string role_of(const json& message) { return text_at(message, "role"); }

bool is_instruction(const json& message) {
  const std::string role = role_of(message);
  return role == "system" || role == "developer";
}

json* calls_of(json& message) {
  if (!message.is_object()) return nullptr;
  const auto found = message.find("tool_calls");
  if (found == message.end() || !found->is_array() || found->empty()) return nullptr;
  return &*found;
}

const json* calls_of(const json& message) { return calls_of(const_cast<json&>(message)); }

json* function_of(json& call) {
  if (!call.is_object()) return nullptr;
  const auto found = call.find("function");
  if (found != call.end() && found->is_object()) return &*found;
  return call.contains("name") ? &call : nullptr;
}

std::string text_at(const json& object, const char* name) {
  if (!object.is_object()) return "";
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Result<std::string> joined_text(const json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (!content.is_array()) return text;
  for (const json& part : content) {
    const auto found = part.is_object() ? part.find("text") : part.end();
    const bool has_text = part.is_object() && found != part.end() && found->is_string();
    if (!has_text && !part.is_string()) {
      return invalid_argument(
          "a message holds a part that is not text, and the model's chat template takes text only; "
          "send {\"type\": \"text\", \"text\": ...} parts");
    }
    if (&part != &content.front()) text += '\n';
    text += has_text ? found->get<std::string>() : part.get<std::string>();
  }
  return text;
}

std::string texts_of(const json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (!content.is_array()) return text;
  for (const json& part : content) {
    const std::string words = part.is_string() ? part.get<std::string>() : text_at(part, "text");
    if (!text.empty() && !words.empty()) text += '\n';
    text += words;
  }
  return text;
}

std::string dumped_json(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace foretoken
