#pragma once
#include <foretoken/config.h>

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/engine_fields.h"

namespace foretoken {

// The flags about graphs, named as in vLLM: --compilation-config (-cc) with JSON, and a flag for
// each of its fields that this engine acts on.
struct GraphFlags {
  std::string config_json;
  EngineConfig config;  // what the flags of the fields say
  std::vector<std::pair<const EngineField*, const CLI::Option*>> flags;

  // They write into this object, which must outlive the parsing.
  void add_to(CLI::App& app);

  // Writes what they say into `engine`. A flag whose field the JSON has too is an error. Fields of
  // vLLM's about torch.compile are passed over. `app` of add_to still lives.
  Status apply_to(EngineConfig& engine) const;
  // Logs a line for each of those.
  void warn() const;
};

}  // namespace foretoken
