#pragma once
#include <foretoken/config.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// The flags about speculation, named as in vLLM where it has them.
struct SpeculativeFlags {
  std::string config_json;
  std::string method;
  std::string model;
  std::optional<int> num_tokens;
  std::string length_policy;

  // They write into this object, which must outlive the parsing.
  void add_to(CLI::App& app);

  // The drafters that they ask for together; none without any. A flag whose field the JSON has too
  // is an error.
  Result<std::vector<SpeculativeConfig>> resolve(const std::string& target) const;
};

}  // namespace foretoken
