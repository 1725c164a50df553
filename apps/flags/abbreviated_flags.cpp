#include "apps/flags/abbreviated_flags.h"

#include <algorithm>
#include <span>

#include "apps/flags/foreign_flags.h"

namespace foretoken {
namespace {

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  const auto commands = app.get_subcommands({});
  const auto found = std::ranges::find_if(
      commands, [&](const CLI::App* command) { return command->get_name() == name; });
  return found == commands.end() ? nullptr : *found;
}

// The only flag that begins so; empty: none does, or several.
std::string whole_name(const CLI::App& command, const std::string& beginning) {
  std::string only;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (!("--" + name).starts_with(beginning)) continue;
      if (!only.empty()) return {};
      only = "--" + name;
    }
  }
  return only;
}

// Whether the flag takes the argument that follows it.
bool takes_next(const CLI::Option* option, const std::string& argument) {
  return option != nullptr && option->get_items_expected_min() > 0 &&
         argument.find('=') == std::string::npos;
}

}  // namespace

std::vector<std::string> complete_flags(const CLI::App& app, std::vector<std::string> arguments) {
  const CLI::App* command = &app;
  size_t at = 0;
  while (at < arguments.size()) {
    const CLI::App* next = find_command(*command, arguments[at]);
    if (next == nullptr) break;
    command = next;
    ++at;
  }
  for (size_t i = at; i < arguments.size() && arguments[i] != "--"; ++i) {
    std::string& argument = arguments[i];
    if (!argument.starts_with("--") || !looks_like_flag(argument)) continue;
    const size_t end = std::min(argument.find('='), argument.size());
    const std::string name = argument.substr(0, end);
    const CLI::Option* option = find_flag(*command, name);
    const auto rest = std::span<const std::string>(arguments).subspan(i);
    if (option == nullptr && foreign_flag_hint(*command, rest).text.empty()) {
      if (const std::string whole = whole_name(*command, name); !whole.empty()) {
        argument.replace(0, end, whole);
        option = find_flag(*command, whole);
      }
    }
    if (takes_next(option, argument)) ++i;
  }
  return arguments;
}

}  // namespace foretoken
