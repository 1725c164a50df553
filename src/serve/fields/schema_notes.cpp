#include "serve/fields/schema_notes.h"

#include "base/files/json_object.h"
#include "chat/calls/call_form.h"
#include "serve/fields/request_body.h"
#include "text/json_schema.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

Status note_schema(const std::string& schema, const std::string& name,
                   std::vector<std::string>* warnings) {
  const Result<RelaxedSchema> relaxed = relax_schema(schema);
  if (!relaxed.ok()) return invalid_argument(name + ": " + relaxed.status().message());
  for (const std::string& sentence : relaxed.value().left_out) {
    warnings->push_back(name + ": " + sentence);
  }
  return {};
}

// The schemas of a structural tag's formats, which lie in each other, and of its older structures.
Status note_parts(const json& part, const std::string& name, std::vector<std::string>* warnings) {
  for (const auto& [key, value] : part.items()) {
    const std::string path = part.is_array() ? name + "[" + key + "]" : name + "." + key;
    if (part.is_object() && (key == "json_schema" || key == "schema")) {
      if (value.is_string()) continue;
      FT_RETURN_IF_ERROR(note_schema(json_text(value), path, warnings));
    } else if (value.is_structured()) {
      FT_RETURN_IF_ERROR(note_parts(value, path, warnings));
    }
  }
  return {};
}

// Whatever else is wrong with a structural tag is for the engine to say.
Status note_structures(const std::string& tag, const std::string& name,
                       std::vector<std::string>* warnings) {
  const json object = parsed_ordered_json(tag);
  for (const char* member : {"format", "structures"}) {
    if (!object.is_object() || !object.contains(member)) continue;
    FT_RETURN_IF_ERROR(note_parts(object[member], name + " " + member, warnings));
  }
  return {};
}

}  // namespace

Status note_schemas(const StructuredOutputs& form, const std::string& name,
                    std::vector<std::string>* warnings) {
  if (form.strict_schemas) return {};
  if (!form.json.empty()) return note_schema(form.json, name, warnings);
  if (!form.structural_tag.empty()) return note_structures(form.structural_tag, name, warnings);
  return {};
}

Status note_tool_schemas(const json& tools, const std::string& choice,
                         std::vector<std::string>* warnings) {
  if (!tools.is_array() || choice == "none") return {};
  for (size_t i = 0; i < tools.size(); ++i) {
    const json& function = tools[i]["function"];
    const bool is_strict = choice == "auto" && is_strict_function(function);
    const bool is_forced = choice == "required" || function["name"] == choice;
    if (!(is_forced || is_strict) || !function.contains("parameters")) continue;
    json parameters = function["parameters"];
    if (!parameters.is_object()) continue;
    // As it is forced: arguments are an object, whatever else is not enforced.
    if (!parameters.contains("type")) parameters["type"] = "object";
    FT_RETURN_IF_ERROR(note_schema(json_text(parameters),
                                   "'tools' entry " + std::to_string(i + 1) + " ('" +
                                       function["name"].get<std::string>() + "')",
                                   warnings));
  }
  return {};
}

}  // namespace foretoken
