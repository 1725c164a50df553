#include "serve/responses_input.h"

#include "serve/chat_body.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

std::string text_at(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The text of a string or of parts of text.
Result<std::string> plain_text(const json& content, const std::string& where) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) {
    return invalid_argument(where + ": 'content' must be a string or an array of parts");
  }
  std::string text;
  for (const json& part : content) {
    const std::string type = part.is_object() ? text_at(part, "type") : "";
    if (type != "input_text" && type != "output_text" && type != "text") {
      return invalid_argument(where + ": parts of type '" + type +
                              "' are not supported; give text");
    }
    if (!part.contains("text") || !part["text"].is_string()) {
      return invalid_argument(where + ": the 'text' of a part must be a string");
    }
    text += part["text"].get<std::string>();
  }
  return text;
}

Status read_message(const json& item, const std::string& where, json* messages) {
  std::string role = text_at(item, "role");
  if (role == "developer") role = "system";
  if (role != "user" && role != "assistant" && role != "system") {
    return invalid_argument(where +
                            ": 'role' must be \"user\", \"assistant\", \"system\" or "
                            "\"developer\"");
  }
  FT_ASSIGN_OR_RETURN(const std::string text, plain_text(item.value("content", json()), where));
  messages->push_back({{"role", role}, {"content", text}});
  return {};
}

// Calls that follow each other, or a text of the assistant, are one message.
Status read_call(const json& item, const std::string& where, json* messages) {
  const std::string name = text_at(item, "name");
  const std::string id = text_at(item, "call_id");
  const auto arguments = item.find("arguments");
  if (name.empty() || id.empty() || arguments == item.end() || !arguments->is_string()) {
    return invalid_argument(where +
                            ": a function_call needs 'call_id', 'name' and 'arguments', a string");
  }
  const bool goes_on = !messages->empty() && messages->back()["role"] == "assistant";
  if (!goes_on) messages->push_back({{"role", "assistant"}, {"content", nullptr}});
  add_tool_call(id, name, text_at(item, "arguments"), &messages->back());
  return {};
}

Status read_item(const json& item, const std::string& where, json* messages) {
  if (!item.is_object()) return invalid_argument(where + " must be an object");
  if (item.contains("type") && !item["type"].is_string()) {
    return invalid_argument(where + ": 'type' must be a string");
  }
  const std::string type = text_at(item, "type");
  if (type.empty() || type == "message") return read_message(item, where, messages);
  if (type == "function_call") return read_call(item, where, messages);
  if (type == "function_call_output") {
    const std::string id = text_at(item, "call_id");
    if (id.empty()) return invalid_argument(where + ": a function_call_output needs a 'call_id'");
    FT_ASSIGN_OR_RETURN(const std::string text, plain_text(item.value("output", json()), where));
    messages->push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", text}});
    return {};
  }
  // Templates leave reasoning of earlier turns out.
  if (type == "reasoning") return {};
  return invalid_argument(where + ": items of type '" + type + "' are not supported");
}

}  // namespace

Status read_responses_input(const json& input, json* messages) {
  if (input.is_string()) {
    messages->push_back({{"role", "user"}, {"content", input}});
    return {};
  }
  if (!input.is_array() || input.empty()) {
    return invalid_argument("'input' must be a text or a list of items, not empty");
  }
  for (size_t i = 0; i < input.size(); ++i) {
    const std::string where = "'input' item " + std::to_string(i + 1);
    FT_RETURN_IF_ERROR(read_item(input[i], where, messages));
  }
  return {};
}

}  // namespace foretoken
