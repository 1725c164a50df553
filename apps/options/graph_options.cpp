#include "apps/options/graph_options.h"

#include <string_view>

#include "apps/options/engine_flags.h"
#include "base/log.h"
#include "config/engine_names.h"
#include "serve/fields/engine_json.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* kGraphFlag = "--compilation-config";
constexpr std::string_view kGraphGroup = "Graphs";

// The fields that --compilation-config holds too.
std::vector<const EngineField*> graph_fields() {
  std::vector<const EngineField*> fields = command_line_fields();
  std::erase_if(fields, [](const EngineField* field) { return field->group != kGraphGroup; });
  return fields;
}

// "-cc 3": vLLM's mode.
bool is_level(const std::string& text) {
  return text.size() == 1 && text[0] >= '0' && text[0] <= '3';
}

Result<json> parse_graph_config(const std::string& text) {
  if (text.empty()) return json::object();
  if (is_level(text)) return json::object();
  return parse_ordered_json_object(text, kGraphFlag);
}

Status read_graph_fields(const json& object, EngineConfig& config) {
  JsonFields fields(object, kGraphFlag);
  for (const EngineField* field : graph_fields()) read_engine_field(fields, *field, &config);
  for (const char* name : vllm_compiler_fields()) fields.ignore({name});
  fields.refuse_unread();
  return fields.status();
}

}  // namespace

void GraphFlags::add_to(CLI::App& app) {
  app.add_option(kGraphFlag, config_json,
                 "Graphs as JSON, also -cc: {\"cudagraph_mode\": \"FULL\", "
                 "\"cudagraph_capture_sizes\": [1, 2, 4]}, in place of the flags of its fields")
      ->group(std::string(kGraphGroup))
      ->type_name("JSON");
  for (const EngineField* field : graph_fields()) {
    flags.emplace_back(field, add_engine_flag(app, *field, config));
  }
}

Status GraphFlags::apply_to(EngineConfig& engine) const {
  FT_ASSIGN_OR_RETURN(const json value, parse_graph_config(config_json));
  FT_RETURN_IF_ERROR(read_graph_fields(value, engine));
  for (const auto& [field, flag] : flags) {
    if (flag->count() == 0) continue;
    const auto found = value.find(field->name);
    if (found != value.end() && !found->is_null()) {
      return invalid_argument(engine_flag(*field) + " and '" + field->name + "' of " + kGraphFlag +
                              " say the same; give one of them");
    }
    copy_engine_field(*field, config, &engine);
  }
  return {};
}

void GraphFlags::warn() const {
  if (is_level(config_json)) {
    FT_LOG(warn, "{} {} has no effect: {}", kGraphFlag, config_json, kNoCompiler);
  }
  const Result<json> value = parse_graph_config(config_json);
  if (!value.ok()) return;
  for (const char* name : vllm_compiler_fields()) {
    if (!value.value().contains(name)) continue;
    FT_LOG(warn, "'{}' of {} has no effect: {}", name, kGraphFlag, kNoCompiler);
  }
}

}  // namespace foretoken
