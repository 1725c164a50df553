#include "serve/messages_request.h"

#include "serve/chat_body.h"
#include "serve/json_fields.h"
#include "serve/request_body.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

std::string text_at(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The text of a member that a block must have.
Result<std::string> text_of(const json& block, const char* name, const std::string& where) {
  const auto found = block.find(name);
  if (found != block.end() && found->is_string()) return found->get<std::string>();
  return invalid_argument(where + ": a block's '" + name + "' must be a string");
}

Status wrong_block(const std::string& where, const std::string& type) {
  if (type.empty()) {
    return invalid_argument(where + ": each block of 'content' needs a \"type\" string");
  }
  return invalid_argument(where + ": blocks of type '" + type + "' are not supported; give text");
}

// The text of a string or of text blocks.
Result<std::string> plain_text(const json& content, const std::string& where) {
  if (content.is_null()) return std::string();
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) {
    return invalid_argument(where + ": 'content' must be a string or an array of blocks");
  }
  std::string text;
  for (const json& block : content) {
    if (block.is_string()) {
      text += block.get<std::string>();
      continue;
    }
    const std::string type = block.is_object() ? text_at(block, "type") : "";
    if (type != "text") return wrong_block(where, type);
    FT_ASSIGN_OR_RETURN(const std::string part, text_of(block, "text", where));
    text += part;
  }
  return text;
}

Status read_tool_result(const json& block, const std::string& where, json* messages) {
  const std::string id = text_at(block, "tool_use_id");
  if (id.empty()) return invalid_argument(where + ": a tool_result needs a 'tool_use_id'");
  FT_ASSIGN_OR_RETURN(std::string text, plain_text(block.value("content", json()), where));
  JsonFields fields(block, where);
  bool failed = false;
  fields.read("is_error", &failed);
  FT_RETURN_IF_ERROR(fields.status());
  if (failed) text = "Error: " + text;
  messages->push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", text}});
  return {};
}

Status read_user(const json& content, const std::string& where, json* messages) {
  std::string text;
  bool has_text = false;
  for (const json& block : content) {
    const std::string type = block.is_object() ? text_at(block, "type") : "";
    if (type == "tool_result") {
      FT_RETURN_IF_ERROR(read_tool_result(block, where, messages));
    } else if (type == "text") {
      FT_ASSIGN_OR_RETURN(const std::string part, text_of(block, "text", where));
      text += part;
      has_text = true;
    } else {
      return wrong_block(where, type);
    }
  }
  if (has_text) messages->push_back({{"role", "user"}, {"content", text}});
  return {};
}

Status read_assistant(const json& content, const std::string& where, json* messages) {
  json message = {{"role", "assistant"}, {"content", ""}};
  std::string text;
  for (const json& block : content) {
    const std::string type = block.is_object() ? text_at(block, "type") : "";
    if (type == "text") {
      FT_ASSIGN_OR_RETURN(const std::string part, text_of(block, "text", where));
      text += part;
    } else if (type == "thinking") {
      message["reasoning_content"] = text_at(block, "thinking");
    } else if (type == "tool_use") {
      const std::string name = text_at(block, "name");
      const json input = block.value("input", json());
      if (name.empty() || !input.is_object()) {
        return invalid_argument(where + ": a tool_use needs a 'name' and an 'input', an object");
      }
      FT_ASSIGN_OR_RETURN(const std::string id, text_of(block, "id", where));
      add_tool_call(id, name, json_text(input), &message);
    } else if (type != "redacted_thinking") {
      return wrong_block(where, type);
    }
  }
  message["content"] = text;
  messages->push_back(std::move(message));
  return {};
}

Status read_messages(const json& given, json* messages) {
  if (!given.is_array() || given.empty()) {
    return invalid_argument("'messages' must be an array of {\"role\", \"content\"}, not empty");
  }
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string where = "message " + std::to_string(i + 1);
    const json& message = given[i];
    const std::string role = message.is_object() ? text_at(message, "role") : "";
    if (role != "user" && role != "assistant" && role != "system") {
      return invalid_argument(where + ": 'role' must be \"user\" or \"assistant\"");
    }
    const json content = message.value("content", json());
    if (content.is_string() || role == "system") {
      FT_ASSIGN_OR_RETURN(const std::string text, plain_text(content, where));
      messages->push_back({{"role", role}, {"content", text}});
    } else if (!content.is_array() || content.empty()) {
      return invalid_argument(where + ": 'content' must be a string or an array of blocks");
    } else {
      FT_RETURN_IF_ERROR(role == "user" ? read_user(content, where, messages)
                                        : read_assistant(content, where, messages));
    }
  }
  return {};
}

Status read_tools(const json& tools, json* chat) {
  if (!tools.is_array()) return invalid_argument("'tools' must be an array");
  for (const json& tool : tools) {
    const json type = tool.is_object() ? tool.value("type", json("custom")) : json(0);
    if (!(type.is_string() || type.is_null()) || text_at(tool, "name").empty()) {
      return invalid_argument(
          "'tools': each must be {\"name\", \"description\", \"input_schema\"}");
    }
    if (type.is_string() && type != "custom") {
      return invalid_argument("'tools': tools of type " + type.dump() +
                              " do not run here; give your own");
    }
    json function = {{"name", tool["name"]}};
    if (tool.contains("description")) function["description"] = tool["description"];
    function["parameters"] = tool.value("input_schema", json::object());
    (*chat)["tools"].push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return {};
}

Status read_tool_choice_of(const json& choice, json* chat) {
  const std::string type = choice.is_object() ? text_at(choice, "type") : "";
  if (type == "auto" || type == "none") {
    (*chat)["tool_choice"] = type;
  } else if (type == "any") {
    (*chat)["tool_choice"] = "required";
  } else if (type == "tool") {
    (*chat)["tool_choice"] = {{"type", "function"},
                              {"function", {{"name", choice.value("name", json())}}}};
  } else {
    return invalid_argument(
        "'tool_choice' must be {\"type\": \"auto\" | \"any\" | \"tool\" | \"none\"}");
  }
  JsonFields fields(choice, "'tool_choice'");
  bool single = false;
  fields.read("disable_parallel_tool_use", &single);
  std::string name;
  fields.read("name", &name);
  if (single) (*chat)["parallel_tool_calls"] = false;
  FT_RETURN_IF_ERROR(fields.status());
  return {};
}

Status read_thinking(const json& thinking, json* chat) {
  const std::string type = thinking.is_object() ? text_at(thinking, "type") : "";
  if (type != "enabled" && type != "disabled" && type != "adaptive") {
    return invalid_argument("'thinking' must be {\"type\": \"enabled\" | \"disabled\"}");
  }
  json& variables = (*chat)["chat_template_kwargs"];
  if (variables.is_null()) variables = json::object();
  if (variables.is_object()) variables.emplace("enable_thinking", type != "disabled");
  return {};
}

Status read_system(const json* system, json* messages) {
  if (system == nullptr) return {};
  FT_ASSIGN_OR_RETURN(const std::string text, plain_text(*system, "'system'"));
  if (!text.empty()) messages->push_back({{"role", "system"}, {"content", text}});
  return {};
}

Status read_choices(JsonFields& fields, json* chat) {
  if (const json* tools = fields.raw("tools"); tools != nullptr) {
    FT_RETURN_IF_ERROR(read_tools(*tools, chat));
  }
  if (const json* choice = fields.raw("tool_choice"); choice != nullptr) {
    // Anthropic's choice without tools means nothing.
    json ignored;
    FT_RETURN_IF_ERROR(read_tool_choice_of(*choice, chat->contains("tools") ? chat : &ignored));
  }
  if (const json* thinking = fields.raw("thinking"); thinking != nullptr) {
    FT_RETURN_IF_ERROR(read_thinking(*thinking, chat));
  }
  return {};
}

}  // namespace

Result<OpenAiRequest> parse_messages_request(const json& body, const OpenAiDefaults& defaults,
                                             bool counts_only) {
  JsonFields fields(body, "");
  json chat = json::object();
  copy_field(fields, "model", "model", &chat);
  const json* messages = fields.raw("messages");
  if (messages == nullptr) return invalid_argument("'messages' is missing");
  chat["messages"] = json::array();
  FT_RETURN_IF_ERROR(read_system(fields.raw("system"), &chat["messages"]));
  FT_RETURN_IF_ERROR(read_messages(*messages, &chat["messages"]));
  if (!fields.has("max_tokens") && !counts_only) {
    return invalid_argument("'max_tokens' is missing; say how many tokens the answer may have");
  }
  copy_field(fields, "max_tokens", "max_tokens", &chat);
  copy_field(fields, "stop_sequences", "stop", &chat);
  copy_shared_fields(fields, &chat);
  FT_RETURN_IF_ERROR(read_choices(fields, &chat));
  fields.ignore({"metadata", "service_tier", "inference_geo", "context_management", "betas",
                 "anthropic_version", "cache_control"});
  fields.refuse_later({"container", "mcp_servers", "output_format", "output_config"});
  fields.refuse_unread();
  FT_RETURN_IF_ERROR(fields.status());
  return parse_openai_request(OpenAiKind::kChat, chat, defaults);
}

}  // namespace foretoken
