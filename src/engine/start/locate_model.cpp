#include "engine/start/locate_model.h"

#include "base/files/json_object.h"
#include "base/files/local_path.h"
#include "engine/start/load_format.h"
#include "hub/ollama_models.h"
#include "hub/resolve_model.h"

namespace foretoken {
namespace {

HubOptions hub_options(const EngineConfig& config, const std::string& revision) {
  HubOptions options = hub_options_from_environment();
  options.revision = revision;
  if (!config.download_dir.empty()) options.cache_folder = local_path(config.download_dir);
  options.weights = !is_dummy(config.load_format);
  options.progress = config.on_download_progress;
  options.cancel = config.cancel_load;
  return options;
}

// Sampling that a model's folder names elsewhere than in a generation_config.json, below what the
// user overrides.
Status lay_under(const nlohmann::json& sampling, EngineConfig* config) {
  if (sampling.empty() || config->generation_config != "auto") return {};
  nlohmann::json all = sampling;
  if (!config->override_generation_config.empty()) {
    FT_ASSIGN_OR_RETURN(const auto own, parse_json_object(config->override_generation_config,
                                                          "--override-generation-config"));
    all.update(own);
  }
  config->override_generation_config = all.dump();
  return {};
}

}  // namespace

Result<EngineConfig> locate_model(const EngineConfig& config) {
  // Whether a folder or a Hub id stands for a GGUF file is known once it is found.
  const bool wants_gguf = config.load_format == "gguf";
  if (!wants_gguf) {
    FT_RETURN_IF_ERROR(choose_load_format(config.load_format, config.model).status());
  }
  EngineConfig located = config;
  HubOptions options = hub_options(config, config.revision);
  // A GGUF file has its weights in itself; a repository without one is refused.
  options.weights = options.weights && !wants_gguf;
  FT_ASSIGN_OR_RETURN(const auto ollama, find_ollama_model(config.model, options.ollama_folder));
  if (ollama && config.revision.empty()) {
    located.model = ollama->gguf;
    FT_RETURN_IF_ERROR(lay_under(ollama->sampling, &located));
  } else {
    FT_ASSIGN_OR_RETURN(located.model, resolve_model_folder(config.model, options));
  }
  FT_RETURN_IF_ERROR(choose_load_format(config.load_format, located.model).status());
  return located;
}

Result<std::vector<std::string>> locate_drafters(const EngineConfig& located) {
  std::vector<std::string> folders;
  for (const SpeculativeConfig& drafter : located.speculative) {
    std::string& folder = folders.emplace_back(located.model);
    if (drafter.model.empty()) continue;
    FT_ASSIGN_OR_RETURN(
        folder, resolve_model_folder(drafter.model, hub_options(located, drafter.revision)));
  }
  return folders;
}

}  // namespace foretoken
