#include "serve/anthropic/messages_input.h"

#include <utility>

#include "serve/answer/chat_messages.h"
#include "serve/fields/member_text.h"
#include "serve/fields/request_body.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/chat_body.h"
#include "text/chat_words.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

std::string type_of(const json& block) { return text_at(block, "type"); }

Status wrong_block(const std::string& where, const std::string& type) {
  if (type.empty()) {
    return invalid_argument(where + ": each block of 'content' needs a \"type\" string");
  }
  return invalid_argument(where + ": blocks of type '" + shown_name(type) +
                          "' are not supported; give text");
}

// A text with what members of its block say above it, such as its title, each in a line.
Result<std::string> headed(const json& block, std::initializer_list<const char*> names,
                           const std::string& text, const std::string& where) {
  std::string all;
  for (const char* name : names) {
    FT_ASSIGN_OR_RETURN(const std::string line, optional_text(block, name, where));
    if (!line.empty()) all += line + "\n";
  }
  return all + text;
}

Result<std::string> document_text(const json& block, const std::string& where) {
  const json source = block.value("source", json());
  const std::string type = type_of(source);
  std::string text;
  if (type == "text") {
    FT_ASSIGN_OR_RETURN(text, required_text(source, "data", where));
  } else if (type == "content") {
    FT_ASSIGN_OR_RETURN(text, anthropic_text(source.value("content", json()), where));
  } else {
    const std::string media = text_at(source, "media_type");
    return invalid_argument(
        where + ": documents of source '" + shown_name(type) + "'" +
        (media.empty() ? "" : " (" + shown_name(media) + ")") +
        " cannot be read here; give their text, {\"type\": \"text\", \"data\"}");
  }
  return headed(block, {"title", "context"}, text, where);
}

// What gateways make of a text: a type that is there, but wrong, is none.
bool is_untyped_text(const json& block) {
  return block.is_object() && block.contains("text") && !block.contains("type");
}

// Whether `block` is text of some kind, which `*text` receives.
Result<bool> read_text_block(const json& block, const std::string& where, std::string* text) {
  const std::string type = type_of(block);
  if (block.is_string()) {
    *text = block.get<std::string>();
  } else if (type == "text" || is_untyped_text(block)) {
    FT_ASSIGN_OR_RETURN(*text, required_text(block, "text", where));
  } else if (type == "document") {
    FT_ASSIGN_OR_RETURN(*text, document_text(block, where));
  } else if (type == "search_result") {
    FT_ASSIGN_OR_RETURN(*text, anthropic_text(block.value("content", json()), where));
    FT_ASSIGN_OR_RETURN(*text, headed(block, {"title", "source"}, *text, where));
  } else if (type == "tool_reference") {
    FT_ASSIGN_OR_RETURN(*text, optional_text(block, "tool_name", where));
  } else {
    return false;
  }
  return true;
}

// Whether a block of a result is of a kind that has no text here.
bool is_unread(const json& block, const std::string& type) {
  if (type == "document") {
    const std::string source = type_of(block.value("source", json()));
    return source != "text" && source != "content";
  }
  return !type.empty() && type != "text" && type != "search_result" && type != "tool_reference";
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// What a tool that ran at a service gave: texts as they are, links by title and address.
Result<std::string> service_text(const json& content, const std::string& where) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) return json_text(content);
  std::string text;
  for (const json& entry : content) {
    FT_ASSIGN_OR_RETURN(const std::string own, optional_text(entry, "text", where));
    FT_ASSIGN_OR_RETURN(const std::string link, headed(entry, {"title", "url"}, "", where));
    text += own.empty() ? link : own + "\n";
  }
  return text;
}

// The blocks of one message in order.
class BlockReader {
 public:
  BlockReader(std::string where, const FieldNotes& notes, json* messages)
      : where_(std::move(where)), notes_(notes), messages_(messages) {}

  Status read_user(const json& content) {
    for (const json& block : content) {
      const std::string type = type_of(block);
      if (type == "tool_result") {
        FT_RETURN_IF_ERROR(read_tool_result(block));
        continue;
      }
      if (type == "container_upload") {
        FT_RETURN_IF_ERROR(leave_out(type));
        continue;
      }
      FT_ASSIGN_OR_RETURN(std::string part, read_text(block, type));
      parts_.push_back({{"type", "text"}, {"text", std::move(part)}});
    }
    if (parts_.empty()) return {};
    json said = parts_.size() == 1 ? parts_[0]["text"] : std::move(parts_);
    messages_->push_back({{"role", "user"}, {"content", std::move(said)}});
    return {};
  }

  Status read_assistant(const json& content) {
    for (const json& block : content) FT_RETURN_IF_ERROR(read_answer(block, type_of(block)));
    if (!is_empty() || messages_->empty() || messages_->back()["role"] != "tool") finish_message();
    return {};
  }

 private:
  Result<std::string> read_text(const json& block, const std::string& type) {
    std::string text;
    FT_ASSIGN_OR_RETURN(const bool is_text, read_text_block(block, where_, &text));
    if (!is_text) return wrong_block(where_, type);
    return text;
  }

  Status leave_out(const std::string& type) {
    return notes_.tell("blocks of type '" + shown_name(type) +
                       "' cannot be read here and were left out");
  }

  // A line for each block; a few words where one is no text.
  Result<std::string> result_text(const json& content) {
    if (is_plain_result(content)) return json_text(content);
    if (!content.is_array()) return anthropic_text(content, where_);
    std::string all;
    for (const json& block : content) {
      if (&block != &content.front()) all += '\n';
      const std::string type = type_of(block);
      if (is_unread(block, type)) {
        FT_RETURN_IF_ERROR(leave_out(type));
        all += unread_part(shown_name(type));
        continue;
      }
      FT_ASSIGN_OR_RETURN(const std::string text, read_text(block, type));
      all += text;
    }
    return all;
  }

  Status read_tool_result(const json& block) {
    FT_ASSIGN_OR_RETURN(const std::string id, optional_text(block, "tool_use_id", where_));
    if (id.empty()) return invalid_argument(where_ + ": a tool_result needs a 'tool_use_id'");
    FT_ASSIGN_OR_RETURN(std::string text, result_text(block.value("content", json())));
    JsonFields fields(block, where_);
    bool failed = false;
    fields.read("is_error", &failed);
    FT_RETURN_IF_ERROR(fields.status());
    if (failed) text = "Error: " + text;
    messages_->push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", text}});
    return {};
  }

  Status read_answer(const json& block, const std::string& type) {
    if (type == "thinking") {
      FT_ASSIGN_OR_RETURN(const std::string thought, optional_text(block, "thinking", where_));
      reasoning_ += thought;
    } else if (ends_with(type, "tool_use")) {
      return read_call(block);
    } else if (ends_with(type, "_tool_result")) {
      return read_service_result(block);
    } else if (type == "compaction") {
      FT_ASSIGN_OR_RETURN(const std::string summary, optional_text(block, "content", where_));
      text_ += summary;
    } else if (type != "redacted_thinking") {
      return read_answered_text(block, type);
    }
    return {};
  }

  // A kind of block that was made elsewhere must not end a conversation.
  Status read_answered_text(const json& block, const std::string& type) {
    std::string text;
    FT_ASSIGN_OR_RETURN(const bool is_text, read_text_block(block, where_, &text));
    if (!is_text && type.empty()) return wrong_block(where_, type);
    if (!is_text) return leave_out(type);
    text_ += text;
    return {};
  }

  Status read_service_result(const json& block) {
    FT_ASSIGN_OR_RETURN(const std::string id, optional_text(block, "tool_use_id", where_));
    FT_ASSIGN_OR_RETURN(const std::string text,
                        service_text(block.value("content", json()), where_));
    if (!is_empty()) finish_message();
    messages_->push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", text}});
    return {};
  }

  Status read_call(const json& block) {
    FT_ASSIGN_OR_RETURN(const std::string name, optional_text(block, "name", where_));
    const json input = block.value("input", json());
    // A text is what gateways make of an object, a broken one what a call that was cut off leaves.
    const bool read = input.is_object() || input.is_string() || input.is_null();
    if (name.empty() || !read || !block.contains("input")) {
      return invalid_argument(where_ + ": a tool_use needs a 'name' and an 'input', an object");
    }
    FT_ASSIGN_OR_RETURN(const std::string id, required_text(block, "id", where_));
    const std::string text = input.is_object() ? json_text(input) : text_at(block, "input");
    add_tool_call(id, name, text, &calls_);
    return {};
  }

  bool is_empty() const { return text_.empty() && reasoning_.empty() && calls_.is_null(); }

  void finish_message() {
    json message = {{"role", "assistant"}, {"content", std::exchange(text_, {})}};
    if (!reasoning_.empty()) message["reasoning_content"] = std::exchange(reasoning_, {});
    if (!calls_.is_null()) message["tool_calls"] = std::exchange(calls_, {})["tool_calls"];
    messages_->push_back(std::move(message));
  }

  const std::string where_;
  const FieldNotes notes_;
  json* messages_;
  json parts_ = json::array();  // of a question
  std::string text_;
  std::string reasoning_;
  json calls_;  // a message with "tool_calls", or null
};

// Claude Code's names for context and messages beside those of the API, as vLLM reads them.
std::string usual_role(const std::string& role) {
  if (role == "ctx" || role == "msg") return "user";
  return role == "developer" ? "system" : role;
}

}  // namespace

Result<std::string> anthropic_text(const json& content, const std::string& where) {
  if (content.is_null()) return std::string();
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) {
    return invalid_argument(where + ": 'content' must be a string or an array of blocks");
  }
  std::string text;
  for (const json& block : content) {
    std::string part;
    FT_ASSIGN_OR_RETURN(const bool is_text, read_text_block(block, where, &part));
    if (!is_text) return wrong_block(where, type_of(block));
    text += part;
  }
  return text;
}

Status read_anthropic_messages(const json& given, const FieldNotes& notes, json* messages) {
  if (!given.is_array() || given.empty()) {
    return invalid_argument("'messages' must be an array of {\"role\", \"content\"}, not empty");
  }
  bool passed_over = false;
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string where = "message " + std::to_string(i + 1);
    const json& message = given[i];
    const std::string role = usual_role(text_at(message, "role"));
    if (role != "user" && role != "assistant" && role != "system") {
      return invalid_argument(where + ": 'role' must be \"user\" or \"assistant\"");
    }
    const json content = message.value("content", json());
    const bool is_empty_list = content.is_array() && content.empty();
    if (content.is_string() || content.is_null() || role == "system" || is_empty_list) {
      FT_ASSIGN_OR_RETURN(const std::string text, anthropic_text(content, where));
      // It only configures the service.
      passed_over |= text.empty() && role == "system";
      if (text.empty() && role == "system") continue;
      messages->push_back({{"role", role}, {"content", text}});
    } else if (!content.is_array()) {
      return invalid_argument(where + ": 'content' must be a string or an array of blocks");
    } else {
      BlockReader reader(where, notes, messages);
      FT_RETURN_IF_ERROR(role == "user" ? reader.read_user(content)
                                        : reader.read_assistant(content));
    }
  }
  // A conversation of nothing but such messages is one of nothing.
  if (messages->empty() && passed_over) {
    messages->push_back({{"role", "system"}, {"content", ""}});
  }
  return {};
}

}  // namespace foretoken
