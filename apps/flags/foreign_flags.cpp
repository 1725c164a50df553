#include "apps/flags/foreign_flags.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "apps/terminal/shell_word.h"
#include "config/engine_foreign_names.h"

namespace foretoken {
namespace {

constexpr const char* kNoValue = "VALUE";

std::vector<std::string> names_of(const ForeignFlag& flag) {
  std::vector<std::string> names;
  std::istringstream list(flag.names);
  for (std::string name; std::getline(list, name, '|');) names.push_back(name);
  return names;
}

const ForeignFlag* find_foreign(const std::string& name) {
  for (const ForeignFlag& flag : foreign_flag_table()) {
    const std::vector<std::string> names = names_of(flag);
    if (std::find(names.begin(), names.end(), name) != names.end()) return &flag;
  }
  return nullptr;
}

bool has_all_flags(const CLI::App& command, const std::string& use) {
  std::istringstream words(use);
  for (std::string word; words >> word;) {
    if (looks_like_flag(word) && find_flag(command, word) == nullptr) return false;
  }
  return true;
}

std::string fill(std::string use, const std::string& value) {
  const size_t place = use.find('%');
  if (place != std::string::npos) use.replace(place, 1, value);
  return use;
}

// What to do in place of the flag.
std::string advice(const CLI::App& command, const ForeignFlag& flag, const std::string& value) {
  const std::string note = flag.note;
  if (flag.uses[0] == nullptr) return note;
  const bool same = flag.translate == nullptr || value == kNoValue;
  const std::string ours = same ? value : flag.translate(value);
  if (ours.empty()) return "remove it; that is the default";
  for (const char* use : flag.uses) {
    if (use == nullptr || !has_all_flags(command, use)) continue;
    // What a translation made is text for the shell already.
    const bool as_it_is = std::string(use).find('\'') != std::string::npos || ours != value;
    return "use " + fill(use, as_it_is ? ours : shell_word(ours)) +
           (note.empty() ? "" : "; " + note);
  }
  const std::string none = "foretoken " + command.get_name() + " has nothing like it";
  return note.empty() ? none : none + "; " + note;
}

std::string path_of(const CLI::App& command) {
  if (command.get_parent() == nullptr) return {};
  const std::string above = path_of(*command.get_parent());
  return (above.empty() ? "" : above + " ") + command.get_name();
}

void add_hints(const CLI::App& command, std::string& lines) {
  for (const CLI::App* below : command.get_subcommands({})) add_hints(*below, lines);
  if (!command.get_subcommands({}).empty()) return;
  for (const ForeignFlag& flag : foreign_flag_table()) {
    for (const std::string& name : names_of(flag)) {
      if (find_flag(command, name) != nullptr) continue;
      const std::vector<std::string> given = {name, "7"};
      lines += path_of(command) + "\t" + foreign_flag_hint(command, given).text + "\n";
    }
  }
}

}  // namespace

bool looks_like_flag(const std::string& argument) {
  const size_t letter = argument.rfind("--", 0) == 0 ? 2 : 1;
  return argument.size() > letter && argument.front() == '-' &&
         std::isalpha(static_cast<unsigned char>(argument[letter])) != 0;
}

const CLI::Option* find_flag(const CLI::App& command, const std::string& name) {
  const bool is_long = name.rfind("--", 0) == 0;
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string>& names = is_long ? option->get_lnames() : option->get_snames();
    const std::string bare = name.substr(is_long ? 2 : 1);
    if (std::find(names.begin(), names.end(), bare) != names.end()) return option;
  }
  return nullptr;
}

ForeignHint foreign_flag_hint(const CLI::App& command, std::span<const std::string> arguments) {
  const std::string& given = arguments.front();
  const size_t equals = std::min(given.find('='), given.size());
  const ForeignFlag* flag = find_foreign(given.substr(0, equals));
  if (flag == nullptr) return {};
  ForeignHint hint{.text = given.substr(0, equals), .num_arguments = 1};
  std::string value = kNoValue;
  if (equals < given.size()) {
    value = given.substr(equals + 1);
  } else if (flag->takes != ForeignFlag::Takes::kNothing && arguments.size() > 1 &&
             !looks_like_flag(arguments[1])) {
    value = arguments[1];
    hint.num_arguments = 2;
  }
  if (value != kNoValue) hint.text += " " + shell_word(value);
  const bool has_command = command.get_subcommands({}).empty();
  hint.text += ": " + (has_command ? advice(command, *flag, value)
                                   : "name a command before, as in foretoken serve");
  return hint;
}

std::string all_foreign_hints(const CLI::App& app) {
  std::string lines;
  add_hints(app, lines);
  return lines;
}

}  // namespace foretoken
