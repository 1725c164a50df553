#pragma once
#include <foretoken/config.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// A copy of `config` whose model is a folder: a Hub id is looked up in the cache or fetched first,
// with the environment's settings, `revision`, `download_dir`, `on_download_progress` and
// `cancel_load`. With load format "dummy" no weights are fetched; a format that the model
// cannot have is an error before anything is fetched. May take long.
Result<EngineConfig> locate_model(const EngineConfig& config);

// The folders of the drafters' models, found in the same way and with their own revisions; that of
// `located`, the result of locate_model, where a drafter names no model.
Result<std::vector<std::string>> locate_drafters(const EngineConfig& located);

}  // namespace foretoken
