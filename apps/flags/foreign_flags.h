#pragma once
#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

namespace foretoken {

// What another engine's flag is on a command of ours.
struct ForeignHint {
  std::string text;  // "--temp 0.7: use --temperature 0.7"; empty: the flag is not in the table
  size_t num_arguments = 0;  // of the command line that it and its value are
};

// The hint for the flag at the front of `arguments`, which `command` does not have.
ForeignHint foreign_flag_hint(const CLI::App& command, std::span<const std::string> arguments);

// The option of the command with this long or short name, dashes included; null: it has none.
const CLI::Option* find_flag(const CLI::App& command, const std::string& name);

// Whether the argument is a flag by its looks: a dash, perhaps a second one, and a letter.
bool looks_like_flag(const std::string& argument);

// For tests, the hints for every flag of the table on every command below `app` that lacks it: a
// line "command<tab>text" each.
std::string all_foreign_hints(const CLI::App& app);

}  // namespace foretoken
