#include "serve/responses/responses_input.h"

#include <utility>

#include "serve/fields/member_text.h"
#include "serve/fields/request_body.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/chat_body.h"
#include "serve/responses/item_settings.h"
#include "serve/responses/responses_tools.h"
#include "text/chat_words.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// Where a part of each type has its text; null for others.
const char* text_member(const std::string& type) {
  if (type == "refusal") return "refusal";
  for (const char* known : {"input_text", "output_text", "text", "reasoning_text"}) {
    if (type == known) return "text";
  }
  return nullptr;
}

// A string, or the texts of parts. Nothing is no text: a history must not end a conversation.
Result<std::vector<std::string>> texts_in(const json& content, const std::string& where) {
  if (content.is_null()) return std::vector<std::string>();
  if (content.is_string()) return std::vector<std::string>{content.get<std::string>()};
  if (!content.is_structured()) {
    return invalid_argument(where + ": 'content' must be a string or an array of parts");
  }
  std::vector<std::string> texts;
  // A part that is alone may stand without a list, and a text without a type.
  for (const json& part : content.is_array() ? content : json::array({content})) {
    const bool is_bare = part.is_object() && !part.contains("type") && part.contains("text");
    const std::string type = is_bare ? "text" : part.is_object() ? text_at(part, "type") : "";
    const char* member = text_member(type);
    if (member == nullptr) {
      return invalid_argument(where + ": parts of type '" + shown_name(type) +
                              "' are not supported; give text");
    }
    if (!part.contains(member) || !part[member].is_string()) {
      return invalid_argument(where + ": the '" + member + "' of a part must be a string");
    }
    texts.push_back(part[member].get<std::string>());
  }
  return texts;
}

Result<std::string> plain_text(const json& content, const std::string& where,
                               const std::string& between = "") {
  FT_ASSIGN_OR_RETURN(const std::vector<std::string> texts, texts_in(content, where));
  std::string all;
  for (size_t i = 0; i < texts.size(); ++i) all += (i > 0 ? between : "") + texts[i];
  return all;
}

// As chats have it: several texts are parts, which a template joins as it does there.
Result<json> message_content(const json& content, const std::string& where) {
  FT_ASSIGN_OR_RETURN(const std::vector<std::string> texts, texts_in(content, where));
  if (texts.size() < 2) return texts.empty() ? json("") : json(texts[0]);
  json parts = json::array();
  for (const std::string& text : texts) parts.push_back({{"type", "text"}, {"text", text}});
  return parts;
}

// What a call that is not one of a function gives its tool.
struct CallForm {
  const char* type;
  const char* name;      // of the tool, where the item has none
  const char* argument;  // the member that is given
  bool is_text;          // as {"input": text}
};
constexpr CallForm kCalls[] = {{"custom_tool_call", "", "input", true},
                               {"local_shell_call", "local_shell", "action", false},
                               {"shell_call", "shell", "action", false},
                               {"apply_patch_call", "apply_patch", "operation", false}};
constexpr const char* kOutputs[] = {"function_call_output", "custom_tool_call_output",
                                    "local_shell_call_output", "shell_call_output",
                                    "apply_patch_call_output"};

// The name of a call, which some items have as their own.
Result<std::string> call_id(const json& item, const std::string& where) {
  FT_ASSIGN_OR_RETURN(std::string id, optional_text(item, "call_id", where));
  if (!id.empty()) return id;
  return optional_text(item, "id", where);
}

// The function that a call of a tool in a namespace is one of.
std::string called_name(const json& item, const std::string& name) {
  const std::string name_space = text_at(item, "namespace");
  return name_space.empty() ? name : function_of(name_space, name);
}

class InputReader {
 public:
  InputReader(const FieldNotes& notes, json* messages, const ItemFinder& find_item)
      : notes_(notes), messages_(messages), find_item_(find_item) {}

  Status read(const json& item, const std::string& where) {
    if (!item.is_object()) return invalid_argument(where + " must be an object");
    if (item.contains("type") && !item["type"].is_string()) {
      return invalid_argument(where + ": 'type' must be a string");
    }
    const std::string type = text_at(item, "type");
    if (type.empty() || type == "message") return read_message(item, where);
    if (type == "function_call") return read_function(item, where);
    if (type == "reasoning") return read_reasoning(item, where);
    if (type == "mcp_call") return read_mcp(item, where);
    if (type == "item_reference") return read_reference(item, where);
    if (is_setting(item)) return {};
    for (const CallForm& form : kCalls) {
      if (type == form.type) return read_call(item, form, where);
    }
    for (const char* output : kOutputs) {
      if (type == output) return read_output(item, type, where);
    }
    return notes_.tell("'input' items of type '" + shown_name(type) +
                       "' cannot be read here and were left out");
  }

 private:
  // The message that calls and reasoning belong to: calls that follow each other, or a text of the
  // assistant, are one.
  json& assistant() {
    const bool goes_on = !messages_->empty() && messages_->back()["role"] == "assistant";
    if (!goes_on) messages_->push_back({{"role", "assistant"}, {"content", nullptr}});
    if (!reasoning_.empty()) {
      messages_->back()["reasoning_content"] = std::exchange(reasoning_, {});
    }
    return messages_->back();
  }

  Status read_message(const json& item, const std::string& where) {
    std::string role = text_at(item, "role");
    if (role == "developer") role = "system";
    if (role == "tool") return read_chat_result(item, where);
    if (role != "user" && role != "assistant" && role != "system") {
      return invalid_argument(where +
                              ": 'role' must be \"user\", \"assistant\", \"system\" or "
                              "\"developer\"");
    }
    const json given = item.value("content", json());
    json content;
    if (role == "assistant") {
      FT_ASSIGN_OR_RETURN(content, plain_text(given, where));
    } else {
      FT_ASSIGN_OR_RETURN(content, message_content(given, where));
    }
    messages_->push_back({{"role", role}, {"content", std::move(content)}});
    if (role == "assistant") {
      const json calls = item.value("tool_calls", json());
      for (const json& call : calls.is_array() ? calls : json::array()) {
        assistant()["tool_calls"].push_back(call);
      }
      assistant();
    } else {
      reasoning_.clear();
    }
    return {};
  }

  // As chats have it, like the calls of an answer.
  Status read_chat_result(const json& item, const std::string& where) {
    FT_ASSIGN_OR_RETURN(const std::string id, optional_text(item, "tool_call_id", where));
    FT_ASSIGN_OR_RETURN(const std::string text,
                        plain_text(item.value("content", json()), where, "\n"));
    messages_->push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", text}});
    return {};
  }

  Status read_function(const json& item, const std::string& where) {
    FT_ASSIGN_OR_RETURN(std::string name, optional_text(item, "name", where));
    FT_ASSIGN_OR_RETURN(const std::string id, optional_text(item, "call_id", where));
    if (!name.empty()) name = called_name(item, name);
    const auto arguments = item.find("arguments");
    const bool given = arguments != item.end() &&
                       (arguments->is_string() || arguments->is_null() || arguments->is_object());
    if (name.empty() || id.empty() || !given) {
      return invalid_argument(
          where +
          ": a function_call needs 'call_id', 'name' and 'arguments', a string or an object");
    }
    const bool text = !arguments->is_object();
    add_tool_call(id, name, text ? text_at(item, "arguments") : json_text(*arguments),
                  &assistant());
    return {};
  }

  Status read_call(const json& item, const CallForm& form, const std::string& where) {
    FT_ASSIGN_OR_RETURN(std::string name, optional_text(item, "name", where));
    name = name.empty() ? form.name : called_name(item, name);
    FT_ASSIGN_OR_RETURN(const std::string id, call_id(item, where));
    const json given = item.value(form.argument, json());
    if (name.empty() || id.empty() || given.is_null()) {
      return invalid_argument(where + ": a " + form.type + " needs 'call_id', a name and '" +
                              form.argument + "'");
    }
    const json arguments = form.is_text ? json{{"input", given}} : given;
    add_tool_call(id, name, json_text(arguments), &assistant());
    return {};
  }

  // A line for each part; a few words where one is no text.
  Result<std::string> result_text(const json& output, const std::string& where) {
    json parts = output;
    for (json& part : parts) {
      const std::string type = part.is_object() ? text_at(part, "type") : "";
      if (type.empty() || text_member(type) != nullptr) continue;
      FT_RETURN_IF_ERROR(notes_.tell("parts of type '" + shown_name(type) +
                                     "' of results cannot be read here and were left out"));
      part = {{"type", "text"}, {"text", unread_part(shown_name(type))}};
    }
    return plain_text(parts, where, "\n");
  }

  Status read_output(const json& item, const std::string& type, const std::string& where) {
    FT_ASSIGN_OR_RETURN(const std::string id, call_id(item, where));
    if (id.empty()) return invalid_argument(where + ": a " + type + " needs a 'call_id'");
    const json output = item.value("output", json());
    std::string text;
    const bool is_json = output.is_object() || output.is_number() || output.is_boolean() ||
                         (type == "shell_call_output" && output.is_array());
    if (is_json) {
      text = json_text(output);
    } else {
      FT_ASSIGN_OR_RETURN(text, result_text(output, where));
    }
    messages_->push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", text}});
    return {};
  }

  Status read_reference(const json& item, const std::string& where) {
    FT_ASSIGN_OR_RETURN(const std::string id, required_text(item, "id", where));
    const std::optional<json> found = find_item_ ? find_item_(id) : std::nullopt;
    if (found) return read(*found, where);
    return notes_.tell("'input' items of type 'item_reference' name '" + shown_name(id) +
                       "', which was not made here or was forgotten; they were left out");
  }

  // A call with its output.
  Status read_mcp(const json& item, const std::string& where) {
    FT_RETURN_IF_ERROR(read_call(item, {"mcp_call", "", "arguments", false}, where));
    json& call = messages_->back()["tool_calls"].back();
    if (item["arguments"].is_string()) call["function"]["arguments"] = item["arguments"];
    const json id = call["id"];
    const json error = item.value("error", json());
    // A text, or an object with a code and a message.
    const std::string failed = error.is_object() ? json_text(error) : text_at(item, "error");
    FT_ASSIGN_OR_RETURN(const std::string output, optional_text(item, "output", where));
    messages_->push_back(
        {{"role", "tool"}, {"tool_call_id", id}, {"content", failed.empty() ? output : failed}});
    return {};
  }

  // Templates that leave reasoning of earlier turns out do so. What is encrypted was made
  // elsewhere.
  Status read_reasoning(const json& item, const std::string& where) {
    const json content = item.value("content", json());
    if (content.is_null()) return {};
    FT_ASSIGN_OR_RETURN(const std::string text, plain_text(content, where));
    reasoning_ += text;
    return {};
  }

  const FieldNotes notes_;
  json* messages_;
  const ItemFinder& find_item_;
  std::string reasoning_;  // of the assistant's next message
};

}  // namespace

Status read_responses_input(const json& input, const FieldNotes& notes, json* messages,
                            const ItemFinder& find_item) {
  if (input.is_string()) {
    messages->push_back({{"role", "user"}, {"content", input}});
    return {};
  }
  if (!input.is_array() || input.empty()) {
    return invalid_argument("'input' must be a text or a list of items, not empty");
  }
  InputReader reader(notes, messages, find_item);
  for (size_t i = 0; i < input.size(); ++i) {
    FT_RETURN_IF_ERROR(reader.read(input[i], "'input' item " + std::to_string(i + 1)));
  }
  return {};
}

}  // namespace foretoken
