#include "serve/openai/chat_body.h"

#include <algorithm>

#include "serve/fields/request_warnings.h"
#include "serve/openai/foreign_fields.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

bool is_field_of(ApiBody body, const std::string& name) {
  const auto fields = api_fields();
  return std::any_of(fields.begin(), fields.end(), [&](const ApiField& field) {
    return (field.bodies & body) != 0 && field.name == name;
  });
}

}  // namespace

void copy_field(JsonFields& fields, const char* from, const char* to, json* chat) {
  const json* value = fields.raw(from);
  if (value != nullptr) (*chat)[to] = *value;
}

void copy_shared_fields(JsonFields& fields, ApiBody from, ApiBody to, json* body) {
  for (const char* name : shared_fields(from, to)) copy_field(fields, name, name, body);
  // A foreign name that the body has as its own is shared, or means something else there.
  for (const char* name : foreign_names()) {
    if (!is_field_of(from, name)) copy_field(fields, name, name, body);
  }
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
