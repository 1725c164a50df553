#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace foretoken {

// The arguments with whole names for beginnings of flags, "--max-num-seqs" for "--max-num-seq", as
// argparse reads them: where a command has exactly one flag that begins so. Flags that other
// engines have stay as they are, and so do values.
std::vector<std::string> complete_flags(const CLI::App& app, std::vector<std::string> arguments);

}  // namespace foretoken
