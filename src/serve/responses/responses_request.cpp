#include "serve/responses/responses_request.h"

#include <algorithm>

#include "serve/fields/json_fields.h"
#include "serve/fields/request_warnings.h"
#include "serve/fields/structured_fields.h"
#include "serve/openai/chat_body.h"
#include "serve/responses/item_settings.h"
#include "serve/responses/response_items.h"
#include "serve/responses/responses_input.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

Status read_text(const json& text, const FieldNotes& notes, json* chat) {
  if (!text.is_object()) return invalid_argument("'text' must be an object");
  JsonFields fields(text, "'text'", notes);
  fields.ignore({"verbosity"});
  const json* format = fields.raw("format");
  fields.check_unread();
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

Status read_reasoning(const json& reasoning, const FieldNotes& notes, json* chat) {
  if (!reasoning.is_object()) return invalid_argument("'reasoning' must be an object");
  JsonFields fields(reasoning, "'reasoning'", notes);
  fields.ignore({"summary", "generate_summary"});
  fields.pass_over({"context", "mode"});
  copy_field(fields, "effort", "reasoning_effort", chat);
  fields.check_unread();
  return fields.status();
}

// What "include" may name beside log-probabilities: parts of items that are never made here, and
// thoughts, which are there without it.
bool is_without_effect(const std::string& name) {
  constexpr const char* kNames[] = {
      "code_interpreter_call.outputs",  "computer_call_output.output.image_url",
      "file_search_call.results",       "message.input_image.image_url",
      "reasoning.encrypted_content",    "web_search_call.results",
      "web_search_call.action.sources",
  };
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Log-probabilities come with "include".
Status read_include(JsonFields& fields, json* chat) {
  std::vector<std::string> included;
  fields.read("include", &included);
  int num_top = 0;
  fields.read("top_logprobs", &num_top);
  for (const std::string& name : included) {
    if (name == "message.output_text.logprobs") {
      (*chat)["logprobs"] = true;
    } else if (!is_without_effect(name)) {
      FT_RETURN_IF_ERROR(fields.notes().tell("'include': '" + shown_name(name) +
                                             "' is unknown and was passed over"));
    }
  }
  if (num_top != 0) {
    (*chat)["logprobs"] = true;
    (*chat)["top_logprobs"] = num_top;
  }
  return fields.status();
}

// `items`: of the conversation so far, which may add tools and change settings.
Status read_objects(JsonFields& fields, const json& items, json* chat, OfferedTools* offered) {
  if (const json* tools = fields.raw("tools"); tools != nullptr) {
    FT_RETURN_IF_ERROR(read_response_tools(*tools, fields.notes(), chat, offered));
  }
  FT_RETURN_IF_ERROR(read_item_tools(items, fields.notes(), chat, offered));
  if (const json* choice = fields.raw("tool_choice"); choice != nullptr) {
    FT_RETURN_IF_ERROR(read_response_choice(*choice, fields.notes(), chat));
  }
  if (const json* text = fields.raw("text"); text != nullptr) {
    FT_RETURN_IF_ERROR(read_text(*text, fields.notes(), chat));
  }
  if (const json* reasoning = fields.raw("reasoning"); reasoning != nullptr) {
    FT_RETURN_IF_ERROR(read_reasoning(*reasoning, fields.notes(), chat));
  }
  const ItemSettings settings = settings_of(items);
  if (!settings.text.is_null()) {
    FT_RETURN_IF_ERROR(read_text(settings.text, fields.notes(), chat));
  }
  if (!settings.reasoning.is_null()) {
    FT_RETURN_IF_ERROR(read_reasoning(settings.reasoning, fields.notes(), chat));
  }
  return read_include(fields, chat);
}

// Under its own name in what is said of it; -1, and -2: as many as fit.
void read_length(JsonFields& fields, json* chat) {
  std::optional<int> length;
  fields.read("max_output_tokens", &length);
  if (!length) return;
  if (*length < 1 && *length != -1 && *length != -2) {
    return fields.fail("'max_output_tokens' must be at least 1");
  }
  (*chat)["max_tokens"] = *length;
}

// What came before a response that goes on from another.
Status read_previous(const std::string& previous, const ResponseStore& store,
                     ResponsesRequest* request) {
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
  request->messages = found->messages;
  request->items = found->input;
  for (const json& item : found->response.value("output", json::array())) {
    request->items.push_back(item);
  }
  return {};
}

// "conversation": its id, or an object with it.
Status read_conversation_id(JsonFields& fields, std::string* id) {
  const json* given = fields.raw("conversation");
  if (given == nullptr) return {};
  const json named = given->is_object() ? given->value("id", json()) : *given;
  if (!named.is_string() || named.get_ref<const std::string&>().empty()) {
    return invalid_argument("'conversation' must be the id of a conversation, or {\"id\": ...}");
  }
  *id = named.get<std::string>();
  return {};
}

// What stands in the conversation that a response belongs to.
Status read_items_before(ConversationStore* conversations, const FieldNotes& notes,
                         ResponsesRequest* request) {
  const std::string& id = request->conversation;
  const auto found = conversations == nullptr ? std::nullopt : conversations->find(id);
  if (!found) {
    return not_found("'conversation' " + id +
                     ": there is no such conversation here, or it was forgotten");
  }
  for (const json& item : found->items) request->items.push_back(item);
  if (request->items.empty()) return {};
  return read_responses_input(request->items, notes, &request->messages);
}

// The conversation so far: what came before, then the input.
Status read_conversation(JsonFields& fields, const ResponseStore& store,
                         ConversationStore* conversations, ResponsesRequest* request) {
  request->items = request->messages = json::array();
  std::string previous;
  fields.read("previous_response_id", &previous);
  FT_RETURN_IF_ERROR(fields.status());
  FT_RETURN_IF_ERROR(read_conversation_id(fields, &request->conversation));
  if (!previous.empty() && !request->conversation.empty()) {
    return invalid_argument(
        "'conversation' and 'previous_response_id' both say what came before; give one of them");
  }
  if (!previous.empty()) FT_RETURN_IF_ERROR(read_previous(previous, store, request));
  if (!request->conversation.empty()) {
    FT_RETURN_IF_ERROR(read_items_before(conversations, fields.notes(), request));
  }
  request->num_items_before = request->items.size();
  const json* input = fields.raw("input");
  // A response may go on without a word.
  const bool silent = input == nullptr || *input == json::array();
  if (silent && (!previous.empty() || request->num_items_before > 0)) return {};
  if (input == nullptr) return invalid_argument("'input' is missing; give a text or a list");
  add_items(*input, &request->items);
  const auto find_item = [&](const std::string& id) -> std::optional<json> {
    for (size_t i = 0; i < request->num_items_before; ++i) {
      if (request->items[i].value("id", json()) == id) return request->items[i];
    }
    return store.find_item(id);
  };
  return read_responses_input(*input, fields.notes(), &request->messages, find_item);
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
          {"truncation", given("truncation", "disabled")},
          {"user", given("user", nullptr)},
          {"metadata", given("metadata", json::object())}};
}

Result<bool> read_truncation(JsonFields& fields) {
  std::string truncation = "disabled";
  fields.read("truncation", &truncation);
  if (truncation != "disabled" && truncation != "auto") {
    return invalid_argument("'truncation' must be \"disabled\" or \"auto\"");
  }
  return truncation == "auto";
}

}  // namespace

Result<ResponsesRequest> parse_responses_request(const json& body, const OpenAiDefaults& defaults,
                                                 const ResponseStore& store,
                                                 ConversationStore* conversations) {
  ResponsesRequest request;
  std::vector<std::string> warnings;
  JsonFields fields(body, "", field_notes(defaults, &warnings));
  json chat = json::object();
  FT_RETURN_IF_ERROR(read_conversation(fields, store, conversations, &request));
  std::string instructions;
  fields.read("instructions", &instructions);
  chat["messages"] = json::array();
  if (!instructions.empty()) {
    chat["messages"].push_back({{"role", "system"}, {"content", instructions}});
  }
  for (const json& message : request.messages) chat["messages"].push_back(message);
  if (chat["messages"].empty()) {
    return invalid_argument("'input' holds nothing that can be read here; give a message");
  }
  read_length(fields, &chat);
  copy_shared_fields(fields, kResponsesBody, kChatBody, &chat);
  FT_RETURN_IF_ERROR(read_objects(fields, request.items, &chat, &request.offered));
  FT_ASSIGN_OR_RETURN(const bool drops_oldest, read_truncation(fields));
  fields.read("store", &request.store);
  fields.read("background", &request.background);
  fields.ignore({"metadata", "client_metadata", "user", "service_tier", "safety_identifier",
                 "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention",
                 "stream_options", "session_id"});
  fields.pass_over_vllms();
  fields.pass_over(
      {"max_tool_calls", "context_management", "moderation", "enable_response_messages"});
  fields.refuse({{"prompt", "prompts are not kept here; give 'instructions' and 'input'"},
                 {"previous_input_messages", "give them in 'input'"}});
  fields.check_unread();
  FT_RETURN_IF_ERROR(fields.status());
  FT_ASSIGN_OR_RETURN(request.chat, parse_as_chat(chat, defaults, std::move(warnings)));
  request.chat.drops_oldest = drops_oldest;
  if (request.background && !request.store) {
    return invalid_argument("'background' needs \"store\": true");
  }
  request.repeated = repeated_fields(body);
  if (!request.conversation.empty()) {
    request.repeated["conversation"] = {{"id", request.conversation}};
  }
  return request;
}

}  // namespace foretoken
