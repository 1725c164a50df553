#include "chat/scan/typed_values.h"

#include "base/files/json_object.h"
#include "base/text/ascii_text.h"
#include "chat/scan/json_scan.h"
#include "chat/scan/python_scan.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string type_of(const json& value) {
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) return "number";
  return value.is_string() ? "string" : value.type_name();
}

}  // namespace

json followed_schema(json schema, const json& root) {
  constexpr int kMaxSteps = 16;  // references may lead in circles
  for (int i = 0; i < kMaxSteps && schema.is_object() && !schema.contains("type"); ++i) {
    const json all = schema.value("allOf", json());
    const json reference = schema.value("$ref", json());
    if (all.is_array() && all.size() == 1) {
      schema = all.front();
      continue;
    }
    if (!reference.is_string() || !reference.get<std::string>().starts_with("#/")) break;
    try {
      const json::json_pointer place(reference.get<std::string>().substr(1));
      if (!root.contains(place)) break;
      schema = json(root.at(place));
    } catch (const json::exception&) {
      break;
    }
  }
  return schema;
}

std::set<std::string> allowed_types(const json& schema) {
  std::set<std::string> types;
  if (!schema.is_object()) return types;
  const json type = schema.value("type", json());
  if (type.is_string()) types.insert(type.get<std::string>());
  if (type.is_array()) {
    for (const json& one : type) types.insert(one.is_string() ? one.get<std::string>() : "");
  }
  for (const char* name : {"anyOf", "oneOf"}) {
    const json members = schema.value(name, json::array());
    if (!members.is_array()) continue;
    for (const json& member : members) types.merge(allowed_types(member));
  }
  const json values = schema.value("enum", json::array());
  if (types.empty() && values.is_array()) {
    for (const json& value : values) types.insert(type_of(value));
  }
  return types;
}

bool is_text_only(const json& schema) {
  const std::set<std::string> types = allowed_types(schema);
  return types.empty() || types == std::set<std::string>{"string"};
}

std::string typed_value(const std::string& text, const json& schema) {
  if (is_text_only(schema)) return dumped(text);
  const std::set<std::string> types = allowed_types(schema);
  const std::string small = lower_case(text);
  const bool word = small == "true" || small == "false" || small == "null";
  json value = parsed_ordered_json(word ? small : text);
  if (value.is_discarded()) value = parsed_ordered_json(python_as_json(text));
  if (value.is_discarded()) return dumped(text);
  const std::string type = type_of(value);
  const bool listed = types.count(type) > 0 || (type == "integer" && types.count("number") > 0);
  return listed || types.count("string") == 0 ? dumped(value) : dumped(text);
}

std::string json_string_part(const std::string& text) {
  std::string out;
  for (const char byte : text) {
    if (byte == '"' || byte == '\\') out += '\\';
    out += json_byte(byte, true);
  }
  return out;
}

}  // namespace foretoken
