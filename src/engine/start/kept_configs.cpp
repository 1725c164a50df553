#include "engine/start/kept_configs.h"

#include <nlohmann/json.hpp>

#include "gguf/model_texts.h"

namespace foretoken {
namespace {

// Fields that change where a model is saved again as it is.
constexpr const char* kOfTheWriter[] = {"transformers_version", "_name_or_path"};

std::string config_text_of(const std::string& model) {
  const auto found = read_model_text(ModelFiles(model), "config.json");
  if (!found.ok() || !found.value()) return {};
  nlohmann::json json = nlohmann::json::parse(*found.value(), nullptr, false);
  if (!json.is_object()) return {};
  for (const char* name : kOfTheWriter) json.erase(name);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::vector<KeptConfig> keep_configs(const std::vector<std::string>& models) {
  std::vector<KeptConfig> kept;
  for (const std::string& model : models) kept.push_back({model, config_text_of(model)});
  return kept;
}

Status check_kept_configs(const std::vector<KeptConfig>& kept) {
  for (const KeptConfig& one : kept) {
    if (config_text_of(one.model) == one.text) continue;
    return invalid_argument(
        one.model +
        ": config.json is another than at the start, and only weights are read again; put the "
        "former one back and wake the engine again, or start another one");
  }
  return {};
}

}  // namespace foretoken
