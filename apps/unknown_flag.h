#pragma once
#include <CLI/CLI.hpp>
#include <string>

namespace foretoken {

// "unknown flag --x; did you mean '--y'?" for the first argument that the chosen subcommand did not
// take.
std::string unknown_argument_message(const CLI::App& app);

// The subcommand that the command line chose, at whatever depth.
const CLI::App& chosen_command(const CLI::App& app);

}  // namespace foretoken
