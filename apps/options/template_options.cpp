#include "apps/options/template_options.h"

#include "apps/terminal/file_text.h"
#include "serve/fields/json_fields.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;  // templates print values in the order of their keys

// The array in `given`, which is JSON itself or the name of a file.
Result<json> read_array(const char* flag, const std::string& given) {
  std::string text = given;
  std::string what = flag;
  const size_t start = given.find_first_not_of(" \t\r\n");
  if (start == std::string::npos || (given[start] != '[' && given[start] != '{')) {
    FT_ASSIGN_OR_RETURN(text, read_input_file(given));
    what += " " + given;
  }
  FT_ASSIGN_OR_RETURN(json value, parse_ordered_json(text, what));
  if (value.is_object()) value = json::array({value});
  if (!value.is_array()) {
    return invalid_argument(what + ": must be a JSON array of objects, not a " +
                            std::string(value.type_name()));
  }
  for (const json& entry : value) {
    if (!entry.is_object()) return invalid_argument(what + ": each entry must be an object");
  }
  return value;
}

}  // namespace

void TemplateOptions::add_to(CLI::App& app) {
  const char* group = "Chat template";
  app.add_option("--chat-template-kwargs", kwargs_json,
                 "More variables for the chat template, as JSON: {\"enable_thinking\": false}")
      ->group(group)
      ->type_name("JSON");
  app.add_option("--tools", tools, "Tools for the chat template: a JSON array, or a file of one")
      ->group(group)
      ->type_name("JSON|FILE");
  app.add_option("--documents", documents,
                 "Documents for the chat template: a JSON array, or a file of one")
      ->group(group)
      ->type_name("JSON|FILE");
}

Result<std::string> TemplateOptions::arguments_json() const {
  json arguments = json::object();
  if (!kwargs_json.empty()) {
    FT_ASSIGN_OR_RETURN(arguments,
                        parse_ordered_json_object(kwargs_json, "--chat-template-kwargs"));
  }
  if (!tools.empty()) {
    FT_ASSIGN_OR_RETURN(arguments["tools"], read_array("--tools", tools));
  }
  if (!documents.empty()) {
    FT_ASSIGN_OR_RETURN(arguments["documents"], read_array("--documents", documents));
  }
  return arguments.empty() ? std::string() : arguments.dump();
}

}  // namespace foretoken
