#include "serve/anthropic/messages_request.h"

#include <algorithm>

#include "serve/anthropic/messages_input.h"
#include "serve/anthropic/mid_conversation.h"
#include "serve/fields/json_fields.h"
#include "serve/fields/request_warnings.h"
#include "serve/fields/structured_fields.h"
#include "serve/openai/chat_body.h"
#include "serve/openai/foreign_chat.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

std::string request_text(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Tools that run at Anthropic's, or whose schemas only its models know, are left out.
Status read_tools(const json& tools, const FieldNotes& notes, json* chat) {
  if (!tools.is_array()) return invalid_argument("'tools' must be an array");
  for (const json& tool : tools) {
    const json type = tool.is_object() ? tool.value("type", json("custom")) : json(0);
    const bool typed = type.is_string() || type.is_null();
    const bool elsewhere = type.is_string() && type != "custom";
    if (!typed || (!elsewhere && request_text(tool, "name").empty())) {
      return invalid_argument(
          "'tools': each must be {\"name\", \"description\", \"input_schema\"}");
    }
    if (elsewhere) {
      FT_RETURN_IF_ERROR(notes.tell("'tools': tools of type '" +
                                    shown_name(type.get<std::string>()) +
                                    "' do not run here and were left out; give your own"));
      continue;
    }
    json function = {{"name", tool["name"]}};
    if (tool.contains("description")) function["description"] = tool["description"];
    if (tool.value("strict", json()) == true) function["strict"] = true;
    function["parameters"] = tool.value("input_schema", json::object());
    (*chat)["tools"].push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return {};
}

// No tools at all where none is left.
void withdraw_tools(const std::set<std::string>& names, json* chat) {
  if (names.empty() || !chat->contains("tools")) return;
  json& tools = (*chat)["tools"];
  std::erase_if(tools.get_ref<json::array_t&>(), [&](const json& tool) {
    const json& name = tool["function"]["name"];
    return name.is_string() && names.contains(name.get<std::string>());
  });
  if (tools.empty()) chat->erase("tools");
}

bool has_tool(const json& chat, const std::string& name) {
  const json tools = chat.value("tools", json::array());
  return std::any_of(tools.begin(), tools.end(),
                     [&](const json& tool) { return tool["function"]["name"] == name; });
}

// `left_out`: tools were.
Status read_tool_choice_of(const json& choice, bool left_out, const FieldNotes& notes, json* chat) {
  const std::string type = choice.is_object() ? request_text(choice, "type") : "";
  if (type == "auto" || type == "none") {
    (*chat)["tool_choice"] = type;
  } else if (type == "any") {
    (*chat)["tool_choice"] = "required";
  } else if (type == "tool" && left_out && !has_tool(*chat, request_text(choice, "name"))) {
    FT_RETURN_IF_ERROR(
        notes.tell("'tool_choice' names a tool that does not run here and was passed over"));
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

Status read_thinking(const json& thinking, const FieldNotes& notes, json* chat) {
  const std::string type = thinking.is_object() ? request_text(thinking, "type") : "";
  if (type.empty()) {
    return invalid_argument("'thinking' must be {\"type\": \"enabled\" | \"disabled\"}");
  }
  bool known = false;
  for (const char* one : {"enabled", "disabled", "adaptive", "between_tools"}) known |= type == one;
  if (!known) {
    FT_RETURN_IF_ERROR(notes.tell("'thinking' of type '" + shown_name(type) +
                                  "' is not known here and was taken for \"enabled\""));
  }
  json& variables = (*chat)["chat_template_kwargs"];
  if (variables.is_null()) variables = json::object();
  if (variables.is_object()) switch_thinking(type != "disabled", &variables);
  if (thinking.value("budget_tokens", json()).is_null()) return {};
  return notes.tell("'thinking': 'budget_tokens' is not applied here");
}

// Claude Code's first block tells its service who pays, with a number that each request has for
// itself: a model has no use for it, and no prefix would ever be found again behind it.
bool is_billing(const json& block) {
  return request_text(block, "text").starts_with("x-anthropic-billing-header");
}

// Documents and results belong to messages.
bool is_other_than_text(const json& block) {
  return block.is_object() && block.contains("type") && block["type"] != "text";
}

Status read_system(const json* system, json* messages) {
  if (system == nullptr) return {};
  json read = *system;
  if (read.is_array() && std::any_of(read.begin(), read.end(), is_other_than_text)) {
    return invalid_argument(
        "'system' must be a string or an array of {\"type\": \"text\", \"text\"}; give other "
        "blocks "
        "in 'messages'");
  }
  if (read.is_array()) std::erase_if(read.get_ref<json::array_t&>(), is_billing);
  FT_ASSIGN_OR_RETURN(const std::string text, anthropic_text(read, "'system'"));
  if (!text.empty()) messages->push_back({{"role", "system"}, {"content", text}});
  return {};
}

// In Anthropic's API the answer goes on with what the conversation ends with of it; a forced call
// begins anew.
void continue_answer(json* chat) {
  const json choice = chat->value("tool_choice", json());
  if (choice == "required" || choice.is_object()) return;
  const json& messages = (*chat)["messages"];
  if (messages.empty()) return;
  const json& last = messages.back();
  if (last["role"] != "assistant" || last.contains("tool_calls")) return;
  if (last["content"] != "") (*chat)["continue_final_message"] = true;
}

// The tools of the request and those that the conversation added, without those that it took back.
Status read_all_tools(JsonFields& fields, const Directives& directives, json* chat) {
  const json* tools = fields.raw("tools");
  if (tools != nullptr) FT_RETURN_IF_ERROR(read_tools(*tools, fields.notes(), chat));
  std::set<std::string> names = directives.withdrawn;
  for (const json& tool : directives.added) names.insert(request_text(tool, "name"));
  withdraw_tools(names, chat);
  FT_RETURN_IF_ERROR(read_tools(directives.added, fields.notes(), chat));
  withdraw_tools(directives.withdrawn, chat);
  return {};
}

Status read_choices(JsonFields& fields, const Directives& directives, json* chat) {
  FT_RETURN_IF_ERROR(read_all_tools(fields, directives, chat));
  if (const json* choice = fields.raw("tool_choice"); choice != nullptr) {
    // Anthropic's choice without tools means nothing.
    json ignored;
    const json* tools = fields.raw("tools");
    const bool has_tools = chat->contains("tools");
    const size_t num_given = (tools == nullptr ? 0 : tools->size()) + directives.added.size();
    const bool left_out = has_tools && (*chat)["tools"].size() < num_given;
    FT_RETURN_IF_ERROR(
        read_tool_choice_of(*choice, left_out, fields.notes(), has_tools ? chat : &ignored));
  }
  if (const json* thinking = fields.raw("thinking"); thinking != nullptr) {
    FT_RETURN_IF_ERROR(read_thinking(*thinking, fields.notes(), chat));
  }
  return {};
}

// "format" of the output as 'response_format'.
Status read_output_format(const json& format, const std::string& name, json* chat) {
  std::optional<StructuredOutputs> form;
  if (!format.is_object()) return invalid_argument(name + " must be an object");
  FT_RETURN_IF_ERROR(read_format(format, name, format, &form));
  json asked = format;
  if (format.value("type", json()) == "json_schema") asked["json_schema"] = format;
  (*chat)["response_format"] = std::move(asked);
  return {};
}

// "output_config" and, before it, "output_format".
Status read_output(JsonFields& fields, json* chat) {
  if (const json* format = fields.raw("output_format"); format != nullptr) {
    FT_RETURN_IF_ERROR(read_output_format(*format, "'output_format'", chat));
  }
  const json* config = fields.raw("output_config");
  if (config == nullptr) return {};
  if (!config->is_object()) return invalid_argument("'output_config' must be an object");
  JsonFields inner(*config, "'output_config'", fields.notes());
  copy_field(inner, "effort", "reasoning_effort", chat);
  if (const json* format = inner.raw("format"); format != nullptr) {
    FT_RETURN_IF_ERROR(read_output_format(*format, "'output_config.format'", chat));
  }
  inner.pass_over({"task_budget"});
  inner.check_unread();
  return inner.status();
}

// Templates leave thinking of earlier turns out by themselves; other edits are not made.
void check_edits(JsonFields& fields) {
  const json* management = fields.raw("context_management");
  if (management == nullptr || !management->is_object()) return;
  const json edits = management->value("edits", json::array());
  const bool other =
      !edits.is_array() || std::any_of(edits.begin(), edits.end(), [](const json& edit) {
        return !request_text(edit, "type").starts_with("clear_thinking");
      });
  if (other) fields.warn("'context_management': the conversation is not edited here");
}

}  // namespace

Result<OpenAiRequest> parse_messages_request(const json& body, const OpenAiDefaults& defaults) {
  std::vector<std::string> warnings;
  JsonFields fields(body, "", field_notes(defaults, &warnings));
  json chat = json::object();
  const json* messages = fields.raw("messages");
  if (messages == nullptr) return invalid_argument("'messages' is missing");
  chat["messages"] = json::array();
  Directives directives;
  if (has_directives(*messages)) {
    FT_ASSIGN_OR_RETURN(directives, read_directives(*messages, fields.notes()));
    messages = &directives.messages;
  }
  FT_RETURN_IF_ERROR(read_system(fields.raw("system"), &chat["messages"]));
  FT_RETURN_IF_ERROR(read_anthropic_messages(*messages, fields.notes(), &chat["messages"]));
  copy_field(fields, "stop_sequences", "stop", &chat);
  copy_shared_fields(fields, kMessagesBody, kChatBody, &chat);
  FT_RETURN_IF_ERROR(read_choices(fields, directives, &chat));
  continue_answer(&chat);
  FT_RETURN_IF_ERROR(read_output(fields, &chat));
  if (!directives.effort.empty()) chat["reasoning_effort"] = directives.effort;
  check_edits(fields);
  fields.ignore({"metadata", "service_tier", "inference_geo", "betas", "anthropic_version",
                 "anthropic_beta", "cache_control", "speed", "diagnostics", "user_profile_id",
                 "workspace_id", "billing_policy", "fallback_credit_token", "compaction"});
  fields.pass_over_vllms();
  fields.pass_over({"container", "mcp_servers", "fallbacks"});
  fields.check_unread();
  FT_RETURN_IF_ERROR(fields.status());
  return parse_as_chat(chat, defaults, std::move(warnings));
}

}  // namespace foretoken
