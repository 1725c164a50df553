#include "serve/fields/member_text.h"

#include "serve/fields/json_fields.h"

namespace foretoken {

using json = nlohmann::ordered_json;

Result<std::string> optional_text(const json& object, const char* name, const std::string& where) {
  if (!object.is_object()) return std::string();
  JsonFields fields(object, where);
  std::string text;
  fields.read(name, &text);
  FT_RETURN_IF_ERROR(fields.status());
  return text;
}

Result<std::string> required_text(const json& object, const char* name, const std::string& where) {
  const bool there = object.is_object() && object.contains(name) && !object[name].is_null();
  if (there) return optional_text(object, name, where);
  return invalid_argument(where + ": '" + name + "' is missing; give a string");
}

std::string unread_part(const std::string& type) {
  return "[" + type + ": left out, as this server reads text only]";
}

}  // namespace foretoken
