#include "serve/openai/chat_body.h"

#include "serve/fields/request_warnings.h"
#include "serve/openai/foreign_fields.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* kShared[] = {"temperature",
                                   "top_p",
                                   "top_k",
                                   "min_p",
                                   "seed",
                                   "presence_penalty",
                                   "frequency_penalty",
                                   "repetition_penalty",
                                   "min_tokens",
                                   "ignore_eos",
                                   "stop_token_ids",
                                   "logit_bias",
                                   "bad_words",
                                   "allowed_token_ids",
                                   "skip_special_tokens",
                                   "spaces_between_special_tokens",
                                   "include_stop_str_in_output",
                                   "chat_template_kwargs",
                                   "documents",
                                   "structured_outputs",
                                   "speculative",
                                   "priority",
                                   "cache_salt",
                                   "truncate_prompt_tokens",
                                   "queue_timeout_seconds",
                                   "timeout_seconds",
                                   "stream_interval",
                                   "include_reasoning",
                                   "request_id",
                                   "stream"};

}  // namespace

void copy_field(JsonFields& fields, const char* from, const char* to, json* chat) {
  const json* value = fields.raw(from);
  if (value != nullptr) (*chat)[to] = *value;
}

void copy_shared_fields(JsonFields& fields, json* chat) {
  for (const char* name : kShared) copy_field(fields, name, name, chat);
  for (const char* name : foreign_names()) copy_field(fields, name, name, chat);
}

Result<OpenAiRequest> parse_as_chat(const json& chat, const OpenAiDefaults& defaults,
                                    std::vector<std::string> warnings) {
  FT_ASSIGN_OR_RETURN(OpenAiRequest request,
                      parse_openai_request(OpenAiKind::kChat, chat, defaults));
  add_warnings(request.warnings, &warnings);
  request.warnings = std::move(warnings);
  return request;
}

void add_tool_call(const std::string& id, const std::string& name, const std::string& arguments,
                   json* message) {
  if (message->is_null()) *message = {{"role", "assistant"}, {"content", nullptr}};
  (*message)["tool_calls"].push_back(
      {{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}});
}

}  // namespace foretoken
