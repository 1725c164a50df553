#include "apps/flags/unknown_flag.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <string_view>

#include "apps/flags/foreign_commands.h"
#include "apps/flags/foreign_flags.h"
#include "base/text/ascii_text.h"
#include "base/text/nearest_name.h"

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

// "there is no command 'serv'; did you mean 'serve'?" Commands of a command are named, too, where
// none is near.
std::string unknown_command_message(const std::string& name, const CLI::App& above) {
  std::vector<std::string> commands;
  std::string list;
  for (const CLI::App* command : above.get_subcommands({})) {
    commands.push_back(command->get_name());
    list += (list.empty() ? "" : ", ") + command->get_name();
  }
  const bool is_program = above.get_parent() == nullptr;
  const std::string before = is_program ? "" : above.get_name() + " ";
  return "there is no command '" + before + name + "'" +
         nearest_name_hint(name, commands, is_program ? "" : "; take one of " + list);
}

// "-oFILE": the short flag, with its value at once.
bool is_short_with_value(const CLI::App& command, const std::string& argument) {
  if (argument.size() < 3 || argument[1] == '-') return false;
  const CLI::Option* option = find_flag(command, argument.substr(0, 2));
  return option != nullptr && option->get_items_expected_min() > 0;
}

// A variable of a script that is not set: CLI11 reads it as the number 0, and without a model's
// name the bundled one would be served.
std::string empty_value_fault(const CLI::Option& option, const std::string& name) {
  const std::string type = option.get_type_name();
  for (const char* kind : {"INT", "UINT", "FLOAT", "N[", "MODEL"}) {
    if (type.starts_with(kind)) {
      return name + " has an empty value; give one, or leave " + name + " out";
    }
  }
  return {};
}

// CLI11 reads 010 as 8.
std::string number_fault(const CLI::Option& option, const std::string& name,
                         const std::string& value) {
  if (value.empty()) return empty_value_fault(option, name);
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
    return number_fault(option, name.substr(0, equals), name.substr(equals + 1));
  }
  if (arguments.size() == 1) return name + " needs a value";
  const std::string& value = arguments[1];
  const bool is_flag = value.rfind("--", 0) == 0 && looks_like_flag(value);
  if (!is_flag) return number_fault(option, name, value);
  if (find_flag(command, value) == nullptr) return {};
  return name + " needs a value, but the flag " + value + " follows; write " + name + "=" + value +
         " if that is meant";
}

bool takes_positional(const CLI::App& command, const char* name) {
  return std::ranges::any_of(command.get_options(), [&](const CLI::Option* option) {
    return option->get_positional() && option->get_name(true) == name;
  });
}

// "True" behind a switch, which vLLM took once, and launchers write for every flag.
std::string switch_fault(const CLI::App& command, std::span<const std::string> arguments) {
  if (arguments.size() < 2) return {};
  const std::string& name = arguments.front();
  const std::string word = lower_case(arguments[1]);
  if (word != "true" && word != "false") return {};
  if (takes_positional(command, "text")) return {};
  const std::string fault = name + " is a switch and takes no value; ";
  if (word == "true") return fault + "write " + name + " alone";
  const std::string opposite = "--no-" + name.substr(std::min<size_t>(name.size(), 2));
  if (find_flag(command, opposite) == nullptr) return fault + "leave it out";
  return fault + "write " + opposite;
}

// "--dtype auto" as one argument, as lists of compose files and of Python's subprocess have it.
std::string joined_fault(const CLI::App& command, const std::string& argument) {
  const size_t blank = argument.find_first_of(" \t");
  if (blank == std::string::npos || argument.find('=') < blank) return {};
  const std::string name = argument.substr(0, blank);
  if (find_flag(command, name) == nullptr) return {};
  const std::string value = argument.substr(std::min(blank + 1, argument.size()));
  return "'" + argument + "' is one argument; give the flag and its value as two, or as " + name +
         "=" + value;
}

// Dashes that word processors and web pages make of "--": figure, en and em dash, bar and minus.
std::string dash_fault(const std::string& argument) {
  std::string_view rest = argument;
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view dash :
         {"\xE2\x80\x92", "\xE2\x80\x93", "\xE2\x80\x94", "\xE2\x80\x95", "\xE2\x88\x92", "-"}) {
      if (rest.size() == argument.size() && dash == "-") continue;
      if (!rest.starts_with(dash)) continue;
      rest.remove_prefix(dash.size());
      found = true;
    }
  }
  if (rest.size() == argument.size() || rest.empty()) return {};
  const bool is_letter = std::isalpha(static_cast<unsigned char>(rest.front())) != 0;
  if (!is_letter) return {};
  return "'" + argument + "' begins with a dash of printed text; write --" + std::string(rest);
}

// Whether the last argument is an empty name of a model, and no value of the flag before it: an
// unknown one takes one value, a list all that follow.
bool is_empty_name(const CLI::App& command, std::span<const std::string> arguments) {
  if (!arguments.back().empty()) return false;
  if (!takes_positional(command, "model") || takes_positional(command, "text")) return false;
  const auto flag = std::find_if(arguments.rbegin(), arguments.rend(), looks_like_flag);
  if (flag == arguments.rend() || is_short_with_value(command, *flag)) return true;
  const size_t equals = flag->find('=');
  const CLI::Option* option = find_flag(command, flag->substr(0, equals));
  if (option != nullptr) return option->get_items_expected_max() <= 1;
  return equals != std::string::npos || flag != arguments.rbegin() + 1;
}

// Whether an argument is llama.cpp's flag that says how drafts are made.
bool names_draft_type(const std::string& argument) { return argument.starts_with("--spec-type"); }

// The hint for a draft model where another flag of the line names the method.
std::string without_method(std::string hint) {
  constexpr std::string_view kMethod = "--spec-method draft_model ";
  if (const size_t at = hint.find(kMethod); at != std::string::npos) hint.erase(at, kMethod.size());
  return hint;
}

// What is wrong with arguments that belong to the command alone. Flags of other engines are told
// all at once, since who brings their command line brings several.
std::string fault_of(const CLI::App& command, std::span<const std::string> arguments) {
  std::string hints;
  const bool names_method = std::any_of(arguments.begin(), arguments.end(), names_draft_type);
  const auto with_hints = [&](const std::string& fault) {
    return hints + (hints.empty() ? "" : "; ") + fault;
  };
  for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (is_empty_name(command, arguments.first(i + 1))) {
      return with_hints(
          "the model's name is empty; give one, or leave it out for the bundled model");
    }
    if (const std::string fault = dash_fault(arguments[i]); !fault.empty()) {
      return with_hints(fault);
    }
    if (!looks_like_flag(arguments[i]) || is_short_with_value(command, arguments[i])) continue;
    if (const std::string fault = joined_fault(command, arguments[i]); !fault.empty()) {
      return with_hints(fault);
    }
    const size_t equals = arguments[i].find('=');
    const std::string name = arguments[i].substr(0, equals);
    if (const CLI::Option* option = find_flag(command, name); option != nullptr) {
      if (option->get_items_expected_min() == 0) {
        const std::string fault = switch_fault(command, arguments.subspan(i));
        if (!fault.empty()) return with_hints(fault);
        continue;
      }
      const std::string fault = value_fault(command, *option, arguments.subspan(i));
      if (!fault.empty()) return with_hints(fault);
      if (equals == std::string::npos) ++i;
      continue;
    }
    const ForeignHint hint = foreign_flag_hint(command, arguments.subspan(i));
    if (hint.text.empty()) {
      // What follows and is no flag is taken for its value.
      hints = with_hints(unknown_flag_message(name, command));
      continue;
    }
    const std::string text = names_method ? without_method(hint.text) : hint.text;
    hints = hints.empty() ? "unknown flag " + text : with_hints(text);
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
  if (at < arguments.size()) {
    const std::string fault = foreign_command_fault(*command, std::span(arguments).subspan(at));
    if (!fault.empty()) return fault + " (see foretoken --help)";
  }
  if (no_command && !looks_like_flag(arguments[at])) return {};  // CLI11 misses the command
  if (at < arguments.size() && !looks_like_flag(arguments[at]) &&
      command->get_require_subcommand_min() > 0) {
    return unknown_command_message(arguments[at], *command) + " (see " + names + " --help)";
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
  if (!rest.empty() && !is_flag(rest.front()) && app.get_subcommands().empty()) {
    return unknown_command_message(rest.front(), app);
  }
  if (flag == rest.end()) {
    return "unexpected argument '" + (rest.empty() ? std::string() : rest.front()) +
           "'; quote values that hold spaces";
  }
  const std::string name = flag->substr(0, flag->find('='));
  return unknown_flag_message(name, chosen_command(app));
}

}  // namespace foretoken
