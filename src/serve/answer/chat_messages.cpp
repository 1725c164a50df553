#include "serve/answer/chat_messages.h"

#include <algorithm>
#include <string>

#include "serve/fields/member_text.h"
#include "serve/fields/request_body.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// Where a part of each type has its text; null for others. Clients send the parts of responses and
// what models refused back as they got them.
const char* text_place(const std::string& type) {
  if (type == "refusal") return "refusal";
  for (const char* known : {"text", "input_text", "output_text"}) {
    if (type == known) return "text";
  }
  return nullptr;
}

bool is_thought(const std::string& type) {
  for (const char* known : {"thinking", "reasoning", "reasoning_text", "redacted_thinking"}) {
    if (type == known) return true;
  }
  return false;
}

// A text or, with Mistral and OpenAI, parts of text; "" where only the service that made it can
// read it. LangChain's parts of type "reasoning" have it in a member of that name.
Result<std::string> thought_of(const json& part, const std::string& where) {
  for (const char* name : {"thinking", "reasoning", "text", "summary"}) {
    const json given = part.value(name, json());
    if (given.is_null()) continue;
    if (!given.is_array()) return optional_text(part, name, where);
    std::string all;
    for (const json& piece : given) {
      FT_ASSIGN_OR_RETURN(const std::string text, required_text(piece, "text", where));
      all += text;
    }
    return all;
  }
  return std::string();
}

// A string, or the text of {"text": ...} without a type, as clients of Gemini write a part; null
// for other parts.
json bare_text(const json& part) {
  if (part.is_string()) return part;
  const bool is_bare = part.is_object() && !part.contains("type");
  const json text = is_bare ? part.value("text", json()) : json();
  return text.is_string() ? text : json();
}

// Parts as {"type": "text", "text": ...}, which may be given as bare strings. Thoughts become the
// message's "reasoning_content", and parts of results that are no text a few words, whose types
// `unread` receives.
Status read_parts(const json& parts, const std::string& where, json* message,
                  std::set<std::string>* unread) {
  json texts = json::array();
  std::string thoughts;
  for (const json& part : parts) {
    if (const json text = bare_text(part); !text.is_null()) {
      texts.push_back({{"type", "text"}, {"text", text}});
      continue;
    }
    if (!part.is_object() || !part.contains("type") || !part["type"].is_string()) {
      return invalid_argument(where +
                              ": each part of 'content' must be {\"type\": \"text\", "
                              "\"text\": ...}");
    }
    const auto type = part["type"].get<std::string>();
    if (is_thought(type)) {
      FT_ASSIGN_OR_RETURN(const std::string thought, thought_of(part, where));
      thoughts += thought;
      continue;
    }
    const char* place = text_place(type);
    if (place == nullptr && (*message)["role"] == "tool") {
      unread->insert(type);
      texts.push_back({{"type", "text"}, {"text", unread_part(type)}});
      continue;
    }
    if (place == nullptr) {
      return invalid_argument(where + ": 'content' parts of type '" + type +
                              "' are not supported; give text");
    }
    FT_ASSIGN_OR_RETURN(const std::string text, required_text(part, place, where));
    json copy = part;
    if (type != "text") copy = {{"type", "text"}, {"text", text}};
    texts.push_back(std::move(copy));
  }
  if (!thoughts.empty() && !message->contains("reasoning_content")) {
    (*message)["reasoning_content"] = thoughts;
  }
  (*message)["content"] = std::move(texts);
  return {};
}

// {"type": "custom", "custom": {"name", "input"}} and {"name", "arguments"} as calls of functions.
void read_other_call(json* call) {
  if (!call->is_object() || call->contains("function")) return;
  const json custom = call->value("custom", json());
  json function = {{"name", call->value("name", json())},
                   {"arguments", call->value("arguments", json(""))}};
  if (custom.is_object()) {
    const json input = {{"input", custom.value("input", json(""))}};
    function = {{"name", custom.value("name", json())}, {"arguments", json_text(input)}};
  }
  for (const char* name : {"custom", "name", "arguments"}) call->erase(name);
  (*call)["type"] = "function";
  (*call)["function"] = std::move(function);
}

Status check_calls(const std::string& where, json* message) {
  const auto calls = message->find("tool_calls");
  if (calls == message->end() || calls->is_null()) return {};
  constexpr const char* kWanted =
      ": 'tool_calls' must be a list of {\"id\", \"type\": \"function\", \"function\": {\"name\", "
      "\"arguments\"}}";
  if (!calls->is_array()) return invalid_argument(where + kWanted);
  for (json& call : *calls) {
    read_other_call(&call);
    const json function = call.is_object() ? call.value("function", json()) : json();
    const json name = function.is_object() ? function.value("name", json()) : json();
    if (!name.is_string()) return invalid_argument(where + kWanted);
  }
  return {};
}

Status check_members(const std::string& where, json* message) {
  for (const char* name : {"name", "tool_call_id", "reasoning_content", "reasoning", "refusal"}) {
    const Result<std::string> text = optional_text(*message, name, where);
    if (!text.ok()) return text.status();
  }
  return check_calls(where, message);
}

// What a model refused to say is what it answered, where it said nothing else.
void read_refusal(json* message) {
  const json refusal = message->value("refusal", json());
  const bool has_words = (*message)["role"] == "assistant" && refusal.is_string();
  if (has_words && message->value("content", json()).is_null()) (*message)["content"] = refusal;
}

// An answer may have no words beside its calls, reasoning or refusal, and a tool no result. Others
// may say that they are empty.
bool may_lack_content(const json& message) {
  return message["role"] == "assistant" || message["role"] == "tool" || message.contains("content");
}

}  // namespace

bool is_plain_result(const json& content) {
  const auto is_part = [](const json& item) {
    return item.is_string() || item.contains("type") || item.contains("text");
  };
  if (content.is_array()) return !content.empty() && std::ranges::none_of(content, is_part);
  return (content.is_object() && !is_part(content)) || content.is_number() || content.is_boolean();
}

Result<json> normalise_messages(const json& messages, std::set<std::string>* unread) {
  if (!messages.is_array() || messages.empty()) {
    return invalid_argument("'messages' must be an array of {\"role\", \"content\"}, not empty");
  }
  json normal = json::array();
  std::set<std::string> passed_over;
  for (const json& message : messages) {
    const std::string where = "message " + std::to_string(normal.size() + 1);
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string()) {
      return invalid_argument(where +
                              ": each of 'messages' must be an object with a \"role\" string");
    }
    json copy = message;
    const auto content = copy.find("content");
    const bool text = content != copy.end() && content->is_string();
    if (content != copy.end() && copy["role"] == "tool" && is_plain_result(*content)) {
      copy["content"] = json_text(*content);
    } else if (content != copy.end() && content->is_structured()) {
      // A part that is alone may stand without a list.
      const json parts = content->is_array() ? *content : json::array({*content});
      FT_RETURN_IF_ERROR(read_parts(parts, where, &copy, &passed_over));
    } else if (!text && content != copy.end() && !content->is_null()) {
      return invalid_argument(where + ": 'content' must be a string or an array of parts");
    } else if (!text && !may_lack_content(copy)) {
      return invalid_argument(where + ": 'content' is missing");
    }
    FT_RETURN_IF_ERROR(check_members(where, &copy));
    read_refusal(&copy);
    normal.push_back(std::move(copy));
  }
  if (unread != nullptr) *unread = std::move(passed_over);
  return normal;
}

}  // namespace foretoken
