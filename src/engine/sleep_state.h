#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "engine/start/resolve_config.h"
#include "model/registry.h"

namespace foretoken {

// Of an engine that may sleep.
struct SleepState {
  // How its weights were read, so that they can be again; the configuration as it was before they
  // told of the model.
  ResolvedConfig config;
  LoadOptions options;
  std::vector<std::string> drafter_folders;

  std::mutex mutex;  // held by whoever puts it to sleep or wakes it
  bool weights_are_away = false;
  bool weights_are_lost = false;
  bool blocks_are_away = false;
};

}  // namespace foretoken
