#include "apps/flags/flag_table.h"

#include <algorithm>
#include <sstream>

namespace foretoken {
namespace {

Completion completion_of(const std::string& value) {
  if (value.find(kFileType) != std::string::npos) return Completion::kFiles;
  if (value == kFolderType) return Completion::kFolders;
  return value == kModelType ? Completion::kModels : Completion::kNothing;
}

// Without what CLI11 appends for validators: "TEXT:{fcfs,priority}".
std::string value_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, std::min(type.find(':'), type.size()));
}

FlagRow row_of(const CLI::Option& option) {
  FlagRow row;
  for (const std::string& name : option.get_lnames()) row.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
  row.positional = row.names.empty();
  if (row.positional) row.names.push_back(option.get_name(true));
  row.text = option.get_description();
  if (option.get_items_expected_max() == 0) return row;
  row.value = value_of(option);
  row.choices = choices_of(option);
  row.completion = completion_of(row.value);
  if (row.value.empty()) row.value = "VALUE";
  row.default_text = option.get_default_str();
  return row;
}

}  // namespace

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  std::vector<std::string> choices;
  const size_t open = type.find('{');
  const size_t close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return choices;
  std::istringstream list(type.substr(open + 1, close - open - 1));
  for (std::string choice; std::getline(list, choice, ',');) choices.push_back(choice);
  return choices;
}

std::string choices_type(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ",") + name;
  return "NAME:{" + list + "}";
}

CommandRow command_table(const CLI::App& app) {
  CommandRow table{.name = app.get_name(),
                   .text = app.get_description(),
                   .flags = {},
                   .argument = {},
                   .commands = {}};
  for (const CLI::Option* option : app.get_options({})) {
    if (!option->get_group().empty()) table.flags.push_back(row_of(*option));
    const bool first = table.argument == Completion::kNothing;
    if (first && option->get_positional()) table.argument = completion_of(value_of(*option));
  }
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!command->get_group().empty()) table.commands.push_back(command_table(*command));
  }
  return table;
}

}  // namespace foretoken
