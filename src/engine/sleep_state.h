#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "engine/start/kept_configs.h"
#include "engine/start/resolve_config.h"
#include "engine/step/sleep_order.h"
#include "model/registry.h"

namespace foretoken {

// Of a rank of an engine that may sleep.
struct SleepState {
  // How its weights were read, so that they can be again; the configuration as it was before they
  // told of the model.
  ResolvedConfig config;
  LoadOptions options;
  std::vector<std::string> drafter_folders;
  std::vector<KeptConfig> configs;

  std::mutex mutex;  // rank 0: held while memory goes and comes
  SleepOutcome own;  // what this rank has
  SleepOutcome all;  // rank 0: what all ranks have, of which `own` is a part
};

}  // namespace foretoken
