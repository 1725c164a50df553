#include "unknown_flag.h"

#include <algorithm>
#include <span>

#include "serve/field_names.h"

namespace foretoken {
namespace {

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

std::string unknown_flag_message(const std::string& name, const CLI::App& command) {
  return "unknown flag " + name + nearest_name_hint(name, flags_of(command), "");
}

bool is_long_flag(const std::string& text) { return text.size() > 2 && text.rfind("--", 0) == 0; }

// Null: the command has no such flag.
const CLI::Option* find_flag(const CLI::App& command, const std::string& name) {
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string>& names = option->get_lnames();
    if (std::find(names.begin(), names.end(), name.substr(2)) != names.end()) return option;
  }
  return nullptr;
}

// What is wrong with arguments that belong to the command alone.
std::string fault_of(const CLI::App& command, std::span<const std::string> arguments) {
  for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (!is_long_flag(arguments[i])) continue;
    const size_t equals = arguments[i].find('=');
    const std::string name = arguments[i].substr(0, equals);
    const CLI::Option* option = find_flag(command, name);
    if (option == nullptr) return unknown_flag_message(name, command);
    if (option->get_items_expected_min() == 0 || equals != std::string::npos) continue;
    if (++i == arguments.size()) return name + " needs a value";
    if (!is_long_flag(arguments[i]) || find_flag(command, arguments[i]) == nullptr) continue;
    return name + " needs a value, but the flag " + arguments[i] + " follows; write " + name + "=" +
           arguments[i] + " if that is meant";
  }
  return {};
}

}  // namespace

std::string flag_fault(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  std::string names = app.get_name();
  size_t at = 0;
  while (at < arguments.size()) {
    const auto commands = command->get_subcommands({});
    const auto next = std::find_if(commands.begin(), commands.end(), [&](const CLI::App* named) {
      return named->get_name() == arguments[at];
    });
    if (next == commands.end()) break;
    command = *next;
    names += " " + arguments[at++];
  }
  const std::string fault = fault_of(*command, std::span(arguments).subspan(at));
  return fault.empty() ? fault : fault + " (see " + names + " --help)";
}

const CLI::App& chosen_command(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : chosen_command(*chosen.front());
}

std::string unknown_argument_message(const CLI::App& app) {
  const std::vector<std::string> rest = app.remaining(true);
  const auto is_flag = [](const std::string& text) { return text.rfind("-", 0) == 0; };
  const auto flag = std::find_if(rest.begin(), rest.end(), is_flag);
  if (flag == rest.end() && !rest.empty() && app.get_subcommands().empty()) {
    std::vector<std::string> commands;
    for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
    return "there is no command '" + rest.front() + "'" +
           nearest_name_hint(rest.front(), commands, "");
  }
  if (flag == rest.end()) {
    return "unexpected argument '" + (rest.empty() ? std::string() : rest.front()) +
           "'; quote values that hold spaces";
  }
  const std::string name = flag->substr(0, flag->find('='));
  return unknown_flag_message(name, chosen_command(app));
}

}  // namespace foretoken
