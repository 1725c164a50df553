#pragma once
#include <foretoken/config.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// The drafters of --speculative-config: one JSON object with vLLM's field names, or a list of them,
// of which the first serves requests that name no method. Fields that hold for the whole engine
// (length policy, acceptance rule and its rates) may stand in one entry or, equal, in several.
// `target`: the target's folder or Hub id, which bundled drafters are looked up for.
Result<std::vector<SpeculativeConfig>> parse_speculative_config(const std::string& text,
                                                                const std::string& target);

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
