#include "apps/options/adapter_options.h"

#include <algorithm>

#include "apps/flags/flag_table.h"
#include "apps/options/engine_options.h"
#include "base/files/json_object.h"

namespace foretoken {
namespace {

constexpr const char* kAdapterFlag = "--lora-modules";

Status wrong_module(const std::string& text) {
  return invalid_argument(std::string(kAdapterFlag) + " '" + text +
                          "' is no adapter; give NAME=FOLDER, or {\"name\": \"NAME\", \"path\": "
                          "\"FOLDER\"}");
}

Result<LoraModule> read_module(const std::string& text) {
  LoraModule module;
  if (!text.starts_with('{')) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) return wrong_module(text);
    module.name = text.substr(0, equals);
    module.path = text.substr(equals + 1);
  } else {
    FT_ASSIGN_OR_RETURN(const auto json, parse_ordered_json_object(text, kAdapterFlag));
    for (const auto& [key, value] : json.items()) {
      std::string* place = key == "name"              ? &module.name
                           : key == "path"            ? &module.path
                           : key == "base_model_name" ? &module.base_model_name
                                                      : nullptr;
      if (place == nullptr || !value.is_string()) return wrong_module(text);
      *place = value.get<std::string>();
    }
  }
  if (module.name.empty() || module.path.empty()) return wrong_module(text);
  return module;
}

}  // namespace

void AdapterFlags::add_to(CLI::App& app) {
  app.add_option(kAdapterFlag, modules,
                 "Adapters by the names that requests use: NAME=FOLDER (PEFT), or a JSON object "
                 "with name, path and base_model_name")
      ->group("Adapters")
      ->type_name("NAME=FOLDER");
}

Status AdapterFlags::apply_to(EngineConfig& config) const {
  for (const std::string& text : modules) {
    FT_ASSIGN_OR_RETURN(LoraModule module, read_module(text));
    const bool twice = std::ranges::any_of(
        config.lora_modules, [&](const LoraModule& known) { return known.name == module.name; });
    if (twice) {
      return invalid_argument(std::string(kAdapterFlag) + " names '" + module.name + "' twice");
    }
    config.lora_modules.push_back(std::move(module));
  }
  return {};
}

}  // namespace foretoken
