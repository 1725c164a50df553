#pragma once
#include <foretoken/config.h>

#include <CLI/CLI.hpp>

namespace foretoken {

// The flags that spread an engine over ranks, named as in vLLM; they write into `parallel`, which
// must outlive the parsing.
void add_parallel_flags(CLI::App& app, ParallelConfig& parallel);

}  // namespace foretoken
