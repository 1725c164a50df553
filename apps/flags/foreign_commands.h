#pragma once
#include <CLI/CLI.hpp>
#include <span>
#include <string>

namespace foretoken {

// What is wrong with the words at the front of `arguments`, which stand where `command` (the
// program, or one of its commands) has its own: other programs' commands ("vllm serve M",
// "llama-server -m M", "run M"), a command that stands twice ("serve serve M", as images whose
// entry point has it are called), and flags of a command before any ("--model M"). Empty: nothing
// of the kind.
std::string foreign_command_fault(const CLI::App& command, std::span<const std::string> arguments);

}  // namespace foretoken
