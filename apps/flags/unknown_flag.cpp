#include "apps/flags/unknown_flag.h"

#include <algorithm>
#include <span>

#include "apps/flags/foreign_flags.h"
#include "serve/fields/field_names.h"

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

// "-oFILE": the short flag, with its value at once.
bool is_short_with_value(const CLI::App& command, const std::string& argument) {
  if (argument.size() < 3 || argument[1] == '-') return false;
  const CLI::Option* option = find_flag(command, argument.substr(0, 2));
  return option != nullptr && option->get_items_expected_min() > 0;
}

// CLI11 reads 010 as 8.
std::string leading_zero_fault(const CLI::Option& option, const std::string& name,
                               const std::string& value) {
  const std::string type = option.get_type_name();
  const bool is_integer = type.find("INT") == 0 || type.find("UINT") == 0 || type.find("N[") == 0;
  const bool is_digits = value.find_first_not_of("0123456789") == std::string::npos;
  if (!is_integer || !is_digits || value.size() < 2 || value.front() != '0') return {};
  const size_t first = std::min(value.find_first_not_of('0'), value.size() - 1);
  return name + " " + value + " begins with 0; write " + value.substr(first);
}

// What is wrong with a known flag at the front of `arguments` and the value that it needs.
std::string value_fault(const CLI::App& command, const CLI::Option& option,
                        std::span<const std::string> arguments) {
  const std::string& name = arguments.front();
  if (const size_t equals = name.find('='); equals != std::string::npos) {
    return leading_zero_fault(option, name.substr(0, equals), name.substr(equals + 1));
  }
  if (arguments.size() == 1) return name + " needs a value";
  const std::string& value = arguments[1];
  const bool is_flag = value.rfind("--", 0) == 0 && looks_like_flag(value);
  if (!is_flag) return leading_zero_fault(option, name, value);
  if (find_flag(command, value) == nullptr) return {};
  return name + " needs a value, but the flag " + value + " follows; write " + name + "=" + value +
         " if that is meant";
}

// What is wrong with arguments that belong to the command alone. Flags of other engines are told
// all at once, since who brings their command line brings several.
std::string fault_of(const CLI::App& command, std::span<const std::string> arguments) {
  std::string hints;
  const auto with_hints = [&](const std::string& fault) {
    return hints + (hints.empty() ? "" : "; ") + fault;
  };
  for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (!looks_like_flag(arguments[i]) || is_short_with_value(command, arguments[i])) continue;
    const size_t equals = arguments[i].find('=');
    const std::string name = arguments[i].substr(0, equals);
    if (const CLI::Option* option = find_flag(command, name); option != nullptr) {
      if (option->get_items_expected_min() == 0) continue;
      const std::string fault = value_fault(command, *option, arguments.subspan(i));
      if (!fault.empty()) return with_hints(fault);
      if (equals == std::string::npos) ++i;
      continue;
    }
    const ForeignHint hint = foreign_flag_hint(command, arguments.subspan(i));
    if (hint.text.empty()) return with_hints(unknown_flag_message(name, command));
    hints = hints.empty() ? "unknown flag " + hint.text : with_hints(hint.text);
    i += hint.num_arguments - 1;
  }
  return hints;
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
  const bool no_command = command == &app && at < arguments.size();
  if (no_command && !looks_like_flag(arguments[at])) return {};  // CLI11 misses the command
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
  if (!rest.empty() && !is_flag(rest.front()) && app.get_subcommands().empty()) {
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
