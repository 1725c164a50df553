#pragma once
#include <foretoken/config.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// The adapters (LoRA) that are there from the start.
struct AdapterFlags {
  std::vector<std::string> modules;  // NAME=FOLDER, or a JSON object

  // --lora-modules; it writes into this object, which must outlive the parsing.
  void add_to(CLI::App& app);
  // Reads the modules. InvalidArgument for one in no known form, or two of one name.
  Status apply_to(EngineConfig& config) const;
};

}  // namespace foretoken
