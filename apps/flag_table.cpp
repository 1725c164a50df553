#include "flag_table.h"

#include <algorithm>
#include <sstream>

namespace foretoken {
namespace {

// The values of "TEXT:{fcfs,priority}"; what CLI11 appends to the type stays out of `*value`.
std::vector<std::string> split_choices(std::string* value) {
  std::vector<std::string> choices;
  const size_t open = value->find('{');
  const size_t close = value->find('}', open);
  if (open != std::string::npos && close != std::string::npos) {
    std::istringstream list(value->substr(open + 1, close - open - 1));
    for (std::string choice; std::getline(list, choice, ',');) choices.push_back(choice);
  }
  value->resize(std::min(value->find(':'), value->size()));
  return choices;
}

FlagRow row_of(const CLI::Option& option) {
  FlagRow row;
  for (const std::string& name : option.get_lnames()) row.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
  row.positional = row.names.empty();
  if (row.positional) row.names.push_back(option.get_name(true));
  row.text = option.get_description();
  if (option.get_items_expected_max() == 0) return row;
  row.value = option.get_type_name();
  row.choices = split_choices(&row.value);
  if (row.value.empty()) row.value = "VALUE";
  row.default_text = option.get_default_str();
  return row;
}

}  // namespace

CommandRow command_table(const CLI::App& app) {
  CommandRow table{
      .name = app.get_name(), .text = app.get_description(), .flags = {}, .commands = {}};
  for (const CLI::Option* option : app.get_options({})) {
    if (!option->get_group().empty()) table.flags.push_back(row_of(*option));
  }
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!command->get_group().empty()) table.commands.push_back(command_table(*command));
  }
  return table;
}

}  // namespace foretoken
