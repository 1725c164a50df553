#include "serve/openai/chat_body.h"

#include <set>
#include <string_view>

#include "serve/fields/request_warnings.h"
#include "serve/openai/foreign_fields.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

std::set<std::string_view> names_of(ApiBody body) {
  std::set<std::string_view> names;
  for (const ApiField& field : api_fields()) {
    if ((field.bodies & body) != 0) names.insert(field.name);
  }
  return names;
}

}  // namespace

void copy_field(JsonFields& fields, const char* from, const char* to, json* chat) {
  const json* value = fields.raw(from);
  if (value != nullptr) (*chat)[to] = *value;
}

void copy_shared_fields(JsonFields& fields, ApiBody from, ApiBody to, json* body) {
  for (const char* name : shared_fields(from, to)) copy_field(fields, name, name, body);
  // A foreign name that the body has as its own is shared, or means something else there.
  const std::set<std::string_view> own = names_of(from);
  for (const char* name : foreign_names()) {
    if (!own.contains(name)) copy_field(fields, name, name, body);
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
