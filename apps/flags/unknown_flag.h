#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace foretoken {

// "unknown flag --x; did you mean '--y'?" for the first argument that the chosen subcommand did not
// take.
std::string unknown_argument_message(const CLI::App& app);

// What is wrong with the flags of a command line before CLI11 reads it, which would take a flag for
// the value of the one before, and the value of an unknown flag for the model; or nothing.
std::string flag_fault(const CLI::App& app, const std::vector<std::string>& arguments);

// The subcommand that the command line chose, at whatever depth.
const CLI::App& chosen_command(const CLI::App& app);

}  // namespace foretoken
