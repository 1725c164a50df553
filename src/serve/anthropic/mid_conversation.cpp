#include "serve/anthropic/mid_conversation.h"

#include <algorithm>
#include <utility>

#include "serve/anthropic/messages_input.h"
#include "serve/fields/member_text.h"
#include "text/chat_words.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

bool changes_tools(const json& block) {
  const std::string type = block.is_object() ? text_at(block, "type") : "";
  return type == "tool_addition" || type == "tool_removal";
}

bool is_system_block(const json& block) {
  return block.is_object() && text_at(block, "type") == "mid_conv_system";
}

bool is_directive(const json& block) { return changes_tools(block) || is_system_block(block); }

const json& member_of(const json& object, const char* name) {
  static const json none;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() ? *found : none;
}

bool has_directive(const json& message) {
  const json& content = member_of(message, "content");
  return content.is_array() && std::any_of(content.begin(), content.end(), is_directive);
}

bool has_settings(const json& message) {
  return !member_of(message, "clear_at").is_null() ||
         !member_of(message, "output_config").is_null();
}

bool is_of(const json& message, const char* role) { return text_at(message, "role") == role; }

// Of its user, and not of tools alone.
bool is_question(const json& message) {
  const json& content = member_of(message, "content");
  return is_of(message, "user") &&
         !(content.is_array() && std::all_of(content.begin(), content.end(), [](const json& block) {
             return text_at(block, "type") == "tool_result";
           }));
}

// What the system says of the effort of a turn: the last word until another question.
class TurnEffort {
 public:
  void read(const json& message) {
    if (is_of(message, "assistant")) answered_ = true;
    if (answered_ && is_question(message)) effort_.clear();
    const std::string said = text_at(member_of(message, "output_config"), "effort");
    if (said.empty()) return;
    effort_ = said;
    answered_ = false;
  }
  const std::string& effort() const { return effort_; }

 private:
  std::string effort_;
  bool answered_ = false;
};

class DirectiveReader {
 public:
  DirectiveReader(const FieldNotes& notes, Directives* found) : notes_(notes), found_(found) {}

  // The parts of a message in their places; `shown`: with its texts.
  Status read(const json& message, bool shown, const std::string& where) {
    json rest = message;
    rest["content"] = json::array();
    for (const json& block : member_of(message, "content")) {
      if (!is_directive(block)) {
        if (shown) rest["content"].push_back(block);
      } else if (changes_tools(block)) {
        FT_RETURN_IF_ERROR(change_tools(block, where));
      } else {
        push(&rest);
        FT_RETURN_IF_ERROR(instruct(block, where));
      }
    }
    push(&rest);
    return {};
  }

 private:
  void push(json* message) {
    if ((*message)["content"].empty()) return;
    found_->messages.push_back(*message);
    (*message)["content"] = json::array();
  }

  Status instruct(const json& block, const std::string& where) {
    json texts = member_of(block, "content");
    if (texts.is_array()) {
      for (const json& one : texts) {
        if (changes_tools(one)) FT_RETURN_IF_ERROR(change_tools(one, where));
      }
      std::erase_if(texts.get_ref<json::array_t&>(), changes_tools);
    }
    FT_ASSIGN_OR_RETURN(std::string text, anthropic_text(texts, where));
    if (text.empty()) return {};
    found_->messages.push_back({{"role", "system"}, {"content", std::move(text)}});
    return {};
  }

  Status change_tools(const json& block, const std::string& where) {
    const std::string type = text_at(block, "type");
    const json& tool = member_of(block, "tool");
    const json& definition = member_of(tool, "definition");
    const std::string kind = text_at(definition, "type");
    if (!kind.empty() && kind != "custom") {
      found_->added.push_back(definition);  // runs elsewhere
      return {};
    }
    if (text_at(tool, "type").starts_with("mcp_")) {
      return notes_.tell("blocks of type '" + type +
                         "' name tools of MCP servers, which do not run here; they were left out");
    }
    const std::string name = text_at(definition.is_object() ? definition : tool, "name");
    if (name.empty()) {
      return invalid_argument(where + ": a " + type +
                              " needs a 'tool', {\"type\": \"tool_reference\", \"name\"}");
    }
    if (type == "tool_removal") {
      found_->withdrawn.insert(name);
      return {};
    }
    found_->withdrawn.erase(name);
    if (definition.is_object()) define(name, definition);
    return {};
  }

  // The last definition of a name counts.
  void define(const std::string& name, const json& definition) {
    std::erase_if(found_->added.get_ref<json::array_t&>(),
                  [&](const json& tool) { return text_at(tool, "name") == name; });
    found_->added.push_back(definition);
  }

  const FieldNotes notes_;
  Directives* found_;
};

// Whether it was for a message of the user before the last one.
bool is_cleared(const json& message, size_t at, size_t last_user) {
  return member_of(message, "clear_at") == "next_user_message" && at < last_user;
}

}  // namespace

bool has_directives(const json& messages) {
  return messages.is_array() &&
         std::any_of(messages.begin(), messages.end(), [](const json& message) {
           return has_directive(message) || has_settings(message);
         });
}

Result<Directives> read_directives(const json& messages, const FieldNotes& notes) {
  Directives found;
  DirectiveReader reader(notes, &found);
  TurnEffort effort;
  size_t last_user = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (is_of(messages[i], "user")) last_user = i;
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const json& message = messages[i];
    const bool cleared = is_cleared(message, i, last_user);
    if (has_directive(message)) {
      FT_RETURN_IF_ERROR(reader.read(message, !cleared, "message " + std::to_string(i + 1)));
    } else if (!cleared) {
      found.messages.push_back(message);
    }
    effort.read(message);
  }
  found.effort = effort.effort();
  return found;
}

}  // namespace foretoken
