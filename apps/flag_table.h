#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace foretoken {

// One flag or positional argument of a command line, as manuals and completions need it.
struct FlagRow {
  std::vector<std::string> names;  // "--seed", "-h", ...; a positional argument has its bare name
  bool positional = false;
  std::string value;                 // "INT", "FILE", ...; empty for a switch
  std::vector<std::string> choices;  // the only values, where they are listed
  std::string default_text;
  std::string text;
};

// A command and what is below it. What is hidden from --help is left out.
struct CommandRow {
  std::string name;
  std::string text;
  std::vector<FlagRow> flags;
  std::vector<CommandRow> commands;
};

CommandRow command_table(const CLI::App& app);

}  // namespace foretoken
