#pragma once
#include <CLI/CLI.hpp>
#include <string>

namespace foretoken {

// What CLI11 says of a command line, as a sentence that names the flag, what was given and what it
// takes.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace foretoken
