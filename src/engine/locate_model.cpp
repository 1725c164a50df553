#include "engine/locate_model.h"

#include "hub/resolve_model.h"

namespace foretoken {

Result<EngineConfig> locate_model(const EngineConfig& config) {
  HubOptions options = hub_options_from_environment();
  options.revision = config.revision;
  if (!config.download_dir.empty()) options.cache_folder = config.download_dir;
  options.weights = config.load_format != "dummy";
  options.progress = config.on_download_progress;
  options.cancel = config.cancel_load;
  EngineConfig located = config;
  FT_ASSIGN_OR_RETURN(located.model, resolve_model_folder(config.model, options));
  return located;
}

}  // namespace foretoken
