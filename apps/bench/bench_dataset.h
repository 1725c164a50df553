#pragma once
#include <foretoken/engine.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// Where the prompts of a benchmark come from, by vLLM's flags.
struct DatasetOptions {
  // prompts: the bundled ones; lines: each line of a text; custom, sharegpt and spec_bench: see
  // bench/samples/prompt_files.h; sonnet: a text file whose lines are drawn; random: ids.
  std::string name = "prompts";
  std::string path;
  std::string category;  // of a spec_bench file; empty: all
  int input_len = 0;     // 0: 512 for random and sonnet
  int output_len = 0;    // 0: the entry's output_tokens or answer, else 128
  int num_prompts = 1000;
  uint64_t seed = 0;

  // The flags write into this object, which must outlive the parsing.
  void add_to(CLI::App& app);
};

struct BenchPrompt {
  std::vector<int32_t> ids;
  int output_len = 0;
};

// Exactly num_prompts prompts; files are repeated until there are so many. Prompts that do not fit
// the engine's context with their output are left out, but one must be left. The same seed gives
// the same prompts.
Result<std::vector<BenchPrompt>> load_bench_prompts(const Engine& engine,
                                                    const DatasetOptions& options);

}  // namespace foretoken
