#include "serve/openapi/openapi_fields.h"

#include <string>

#include "serve/fields/api_fields.h"
#include "serve/openapi/openapi_rules.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

json nullable(const std::string& text) {
  json schema = json::parse(text);
  if (schema == json{{"description", "Has no effect."}}) return schema;
  return {{"anyOf", {std::move(schema), {{"type", "null"}}}}};
}

const char* required_field(ApiBody body) {
  switch (body) {
    case kCompletionBody:
      return "prompt";
    case kEmbeddingBody:
    case kResponsesBody:
      return "input";
    default:
      return "messages";
  }
}

}  // namespace

void allow_more_properties(json* schema) {
  if (schema->is_object()) {
    const auto more = schema->find("additionalProperties");
    if (more != schema->end() && *more == false) *more = true;
  }
  if (!schema->is_structured()) return;
  for (json& part : *schema) allow_more_properties(&part);
}

json openapi_body(ApiBody body, const OpenApiFacts& facts) {
  const std::string required = required_field(body);
  json properties = json::object();
  for (const ApiField& field : api_fields()) {
    if ((field.bodies & body) == 0) continue;
    if (field.name == std::string("lora") && !facts.has_adapters) continue;
    const bool is_required = field.name == required;
    properties[field.name] = is_required ? json::parse(field.schema) : nullable(field.schema);
  }
  json schema = {{"type", "object"},
                 {"properties", std::move(properties)},
                 {"required", {required}},
                 {"additionalProperties", !facts.strict_fields}};
  if (!facts.strict_fields) {
    // Of which another name is an error always.
    json speculative = schema["properties"].value("speculative", json());
    allow_more_properties(&schema["properties"]);
    if (!speculative.is_null()) schema["properties"]["speculative"] = std::move(speculative);
  }
  if (body == kEmbeddingBody) {
    // A text or a chat.
    schema.erase("required");
    schema["anyOf"] = {
        {{"required", {"input"}},
         {"properties",
          {{"input", {{"type", {"string", "array"}}}}, {"messages", {{"type", "null"}}}}}},
        {{"required", {"messages"}},
         {"properties", {{"messages", {{"type", "array"}}}, {"input", {{"type", "null"}}}}}}};
  }
  json rules = openapi_rules(body, facts);
  if (!rules.empty()) schema["allOf"] = std::move(rules);
  return schema;
}

}  // namespace foretoken
