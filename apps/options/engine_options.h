#pragma once
#include <foretoken/engine.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "apps/flags/vllm_flags.h"
#include "apps/options/adapter_options.h"
#include "apps/options/graph_options.h"
#include "apps/options/speculative_option.h"
#include "base/result.h"

namespace foretoken {

// The flags that shape an engine, named as in vLLM.
struct EngineOptions {
  EngineConfig config;
  SpeculativeFlags speculative;
  GraphFlags graphs;
  AdapterFlags adapters;
  std::string kv_transfer_config;  // JSON, as vLLM takes it
  VllmFlags vllm;                  // those that have no effect here
  std::string log_level = "info";
  std::string log_format = "text";
  // Whoever asks waits for the last of all answers, so that nobody's tokens need be kept flowing:
  // unless --long-prefill-token-threshold says otherwise, prompts fill their steps.
  bool offline = false;

  // Adds the flags to a subcommand; they write into this object, which must outlive the parsing.
  // `positional_model`: a bare argument is the model.
  void add_to(CLI::App& app, bool positional_model = true);

  // The finished configuration: speculation parsed, the bundled model where none was named.
  Result<EngineConfig> resolve() const;
};

// Starts logging and resolves the options.
Result<EngineConfig> prepare_engine(const EngineOptions& options);

// Starts logging and the engine, with progress on stderr. Aborted when a signal came meanwhile.
Result<std::unique_ptr<Engine>> start_engine(const EngineOptions& options);

// As CLI::Validator: integers with a suffix: k, m, g, t (powers of 1000, with decimals) and K, M,
// G, T (powers of 1024), also written Ki and KiB.
CLI::Validator human_integer();

// The same, and "auto" or -1, which become -1.
CLI::Validator human_integer_or_auto();

// As CLI::Validator: refuses numbers below `low`.
CLI::Validator at_least(int64_t low);

// The same for numbers outside of `low` to `high`.
CLI::Validator within(int64_t low, int64_t high);

// As CLI::Validator: refuses what is no integer from 0 up.
CLI::Validator seed_number();
// An element of a list of token ids.
CLI::Validator token_id();

}  // namespace foretoken
