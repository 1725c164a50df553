#pragma once
#include <foretoken/config.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// The flags of adapters (LoRA), named as vLLM's.
struct AdapterFlags {
  std::vector<std::string> modules;  // NAME=FOLDER, or a JSON object

  // They write into this object and into `config`, which must outlive the parsing.
  void add_to(CLI::App& app, EngineConfig& config);
  // Reads the modules. InvalidArgument for one in no known form, or two of one name.
  Status apply_to(EngineConfig& config) const;
};

}  // namespace foretoken
