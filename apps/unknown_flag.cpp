#include "unknown_flag.h"

#include <algorithm>

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

}  // namespace

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
  return "unknown flag " + name + nearest_name_hint(name, flags_of(chosen_command(app)), "");
}

}  // namespace foretoken
