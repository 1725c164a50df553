#include "serve/responses_request.h"

#include "serve/chat_body.h"
#include "serve/json_fields.h"
#include "serve/responses_input.h"
#include "serve/structured_fields.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

Status read_tools(const json& tools, json* chat) {
  if (!tools.is_array()) return invalid_argument("'tools' must be an array");
  for (const json& tool : tools) {
    const json type = tool.is_object() ? tool.value("type", json()) : json();
    if (!type.is_string()) {
      return invalid_argument(
          "'tools': each must be {\"type\": \"function\", \"name\", \"parameters\"}");
    }
    if (type != "function") {
      return invalid_argument("'tools': tools of type " + type.dump() +
                              " do not run here; give functions");
    }
    json function = json::object();
    for (const char* name : {"name", "description", "parameters", "strict"}) {
      if (tool.contains(name) && !tool[name].is_null()) function[name] = tool[name];
    }
    (*chat)["tools"].push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return {};
}

// "auto" and "required" without tools mean nothing.
Status read_choice(const json& choice, json* chat) {
  if (!choice.is_object() && choice != "auto" && choice != "none" && choice != "required") {
    return invalid_argument(
        "'tool_choice' must be \"none\", \"auto\", \"required\" or {\"type\": \"function\", "
        "\"name\": ...}");
  }
  if (!choice.is_object() && !chat->contains("tools")) return {};
  const bool named = choice.is_object() && choice.contains("name");
  (*chat)["tool_choice"] =
      named ? json{{"type", "function"}, {"function", {{"name", choice["name"]}}}} : choice;
  return {};
}

Status read_text(const json& text, json* chat) {
  if (!text.is_object()) return invalid_argument("'text' must be an object");
  JsonFields fields(text, "'text'");
  fields.ignore({"verbosity"});
  const json* format = fields.raw("format");
  fields.refuse_unread();
  FT_RETURN_IF_ERROR(fields.status());
  if (format == nullptr) return {};
  if (!format->is_object()) return invalid_argument("'text.format' must be an object");
  std::optional<StructuredOutputs> form;
  FT_RETURN_IF_ERROR(read_format(*format, "'text.format'", *format, &form));
  json asked = *format;
  if (format->value("type", json()) == "json_schema") asked["json_schema"] = *format;
  (*chat)["response_format"] = std::move(asked);
  return {};
}

Status read_reasoning(const json& reasoning, json* chat) {
  if (!reasoning.is_object()) return invalid_argument("'reasoning' must be an object");
  JsonFields fields(reasoning, "'reasoning'");
  fields.ignore({"summary", "generate_summary"});
  copy_field(fields, "effort", "reasoning_effort", chat);
  fields.refuse_unread();
  return fields.status();
}

// Log-probabilities come with "include".
Status read_include(JsonFields& fields, json* chat) {
  std::vector<std::string> included;
  fields.read("include", &included);
  int num_top = 0;
  fields.read("top_logprobs", &num_top);
  for (const std::string& name : included) {
    if (name == "message.output_text.logprobs") (*chat)["logprobs"] = true;
  }
  if (num_top != 0) {
    (*chat)["logprobs"] = true;
    (*chat)["top_logprobs"] = num_top;
  }
  return fields.status();
}

Status read_objects(JsonFields& fields, json* chat) {
  if (const json* tools = fields.raw("tools"); tools != nullptr) {
    FT_RETURN_IF_ERROR(read_tools(*tools, chat));
  }
  if (const json* choice = fields.raw("tool_choice"); choice != nullptr) {
    FT_RETURN_IF_ERROR(read_choice(*choice, chat));
  }
  if (const json* text = fields.raw("text"); text != nullptr) {
    FT_RETURN_IF_ERROR(read_text(*text, chat));
  }
  if (const json* reasoning = fields.raw("reasoning"); reasoning != nullptr) {
    FT_RETURN_IF_ERROR(read_reasoning(*reasoning, chat));
  }
  return read_include(fields, chat);
}

// The conversation so far: what came before, then the input.
Status read_conversation(JsonFields& fields, const ResponseStore& store, json* messages) {
  std::string previous;
  fields.read("previous_response_id", &previous);
  *messages = json::array();
  if (!previous.empty()) {
    const std::optional<StoredResponse> found = store.find(previous);
    if (!found) {
      return not_found("'previous_response_id' " + previous +
                       ": there is no such response here, or it was forgotten");
    }
    const json status = found->response.value("status", json());
    if (found->running) {
      return invalid_argument("'previous_response_id' " + previous + " has not ended yet");
    }
    if (status != "completed" && status != "incomplete") {
      return invalid_argument("'previous_response_id' " + previous + " has the status " +
                              status.dump() + "; go on from one that was completed");
    }
    *messages = found->messages;
  }
  const json* input = fields.raw("input");
  if (input == nullptr) return invalid_argument("'input' is missing; give a text or a list");
  return read_responses_input(*input, messages);
}

// In OpenAI's order, with its defaults.
json repeated_fields(const json& body) {
  const auto given = [&](const char* name, json otherwise) {
    const auto found = body.find(name);
    return found == body.end() || found->is_null() ? otherwise : *found;
  };
  return {{"instructions", given("instructions", nullptr)},
          {"max_output_tokens", given("max_output_tokens", nullptr)},
          {"max_tool_calls", nullptr},
          {"parallel_tool_calls", given("parallel_tool_calls", true)},
          {"previous_response_id", given("previous_response_id", nullptr)},
          {"prompt_cache_key", given("prompt_cache_key", nullptr)},
          {"reasoning", given("reasoning", {{"effort", nullptr}, {"summary", nullptr}})},
          {"safety_identifier", given("safety_identifier", nullptr)},
          {"service_tier", "default"},
          {"store", given("store", true)},
          {"background", given("background", false)},
          {"temperature", given("temperature", nullptr)},
          {"text", given("text", {{"format", {{"type", "text"}}}})},
          {"tool_choice", given("tool_choice", "auto")},
          {"tools", given("tools", json::array())},
          {"top_logprobs", given("top_logprobs", 0)},
          {"top_p", given("top_p", nullptr)},
          {"truncation", "disabled"},
          {"user", given("user", nullptr)},
          {"metadata", given("metadata", json::object())}};
}

Status read_truncation(JsonFields& fields) {
  std::string truncation = "disabled";
  fields.read("truncation", &truncation);
  if (truncation == "disabled") return {};
  return invalid_argument(
      "'truncation' other than \"disabled\" is not supported; use 'truncate_prompt_tokens'");
}

}  // namespace

Result<ResponsesRequest> parse_responses_request(const json& body, const OpenAiDefaults& defaults,
                                                 const ResponseStore& store) {
  ResponsesRequest request;
  JsonFields fields(body, "");
  json chat = json::object();
  copy_field(fields, "model", "model", &chat);
  FT_RETURN_IF_ERROR(read_conversation(fields, store, &request.messages));
  std::string instructions;
  fields.read("instructions", &instructions);
  chat["messages"] = json::array();
  if (!instructions.empty()) {
    chat["messages"].push_back({{"role", "system"}, {"content", instructions}});
  }
  for (const json& message : request.messages) chat["messages"].push_back(message);
  copy_field(fields, "max_output_tokens", "max_tokens", &chat);
  copy_field(fields, "stop", "stop", &chat);
  copy_field(fields, "parallel_tool_calls", "parallel_tool_calls", &chat);
  copy_shared_fields(fields, &chat);
  FT_RETURN_IF_ERROR(read_objects(fields, &chat));
  FT_RETURN_IF_ERROR(read_truncation(fields));
  fields.read("store", &request.store);
  fields.read("background", &request.background);
  fields.ignore({"metadata", "user", "service_tier", "safety_identifier", "prompt_cache_key",
                 "prompt_cache_retention", "max_tool_calls", "stream_options"});
  fields.refuse_later({"conversation", "prompt"});
  fields.refuse_unread();
  FT_RETURN_IF_ERROR(fields.status());
  FT_ASSIGN_OR_RETURN(request.chat, parse_openai_request(OpenAiKind::kChat, chat, defaults));
  if (request.background && (request.chat.stream || !request.store)) {
    return invalid_argument("'background' needs \"store\": true and goes without 'stream'");
  }
  request.repeated = repeated_fields(body);
  return request;
}

}  // namespace foretoken
