#pragma once
#include <foretoken/config.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// The flags about graphs, named as in vLLM: --compilation-config (-cc) with JSON, and a flag for
// each of its fields that this engine acts on.
struct GraphFlags {
  std::string config_json;
  std::string mode;
  std::vector<std::string> sizes;
  std::optional<int> max_size;

  // They write into this object, which must outlive the parsing.
  void add_to(CLI::App& app);

  // Writes what they say into `config`. A flag whose field the JSON has too is an error. Fields of
  // vLLM's about torch.compile are passed over.
  Status apply_to(EngineConfig& config) const;
  // Logs a line for each of those.
  void warn() const;
};

}  // namespace foretoken
