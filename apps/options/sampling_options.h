#pragma once
#include <foretoken/request.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace foretoken {

// The sampling flags that were given, as a JSON object with vLLM's field names. What is not given
// stays as the model's generation config has it.
struct SamplingFlags {
  nlohmann::ordered_json fields = nlohmann::ordered_json::object();
  // For the help: what --max-tokens is where neither flag nor model say it.
  std::string max_tokens_default = "16";

  // Adds a flag for every row of config/sampling_fields.h; they write into this object, which must
  // outlive the parsing.
  void add_to(CLI::App& app);

  // Lays the flags over `*sampling`. Fails on values of the wrong type.
  Status apply(SamplingParams* sampling) const;
  // What can be said against them before a model is loaded.
  Status check() const;
};

// --speculative JSON: the speculation of requests that say nothing of it. Writes into `params`,
// which must outlive the parsing.
void add_speculative_flag(CLI::App& app, SpeculativeParams& params);

// --per-request-spec-decode-metrics, and whether answers have them: Unsupported for what is not
// counted.
void add_speculation_metrics_flag(CLI::App& app, std::string& level);
Result<bool> wants_speculation_metrics(const std::string& level);

// Flags of a request beside sampling: --priority, --truncate-prompt-tokens, --cache-salt,
// --no-add-special-tokens and --speculative. They write into `request`, which must outlive the
// parsing.
void add_request_flags(CLI::App& app, Request& request);

}  // namespace foretoken
