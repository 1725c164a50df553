#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace foretoken {

// What a shell offers for a value that has no list of choices.
enum class Completion { kNothing, kFiles, kFolders, kModels };

// One flag or positional argument of a command line, as manuals and completions need it.
struct FlagRow {
  std::vector<std::string> names;  // "--seed", "-h", ...; a positional argument has its bare name
  bool positional = false;
  std::string value;                 // "INT", "FILE", ...; empty for a switch
  std::vector<std::string> choices;  // values to offer, where they are listed
  Completion completion = Completion::kNothing;
  std::string default_text;
  std::string text;
};

// A command and what is below it. What is hidden from --help is left out.
struct CommandRow {
  std::string name;
  std::string text;
  std::vector<FlagRow> flags;
  Completion argument = Completion::kNothing;  // its positional argument
  std::vector<CommandRow> commands;
};

CommandRow command_table(const CLI::App& app);

// The values of an option that are listed, by CLI::IsMember or choices_type(); empty: none are.
std::vector<std::string> choices_of(const CLI::Option& option);

// A type_name() that lists values for the help, the manual and completions without forbidding
// others: "NAME:{cpu,cuda}".
std::string choices_type(const std::vector<std::string>& names);

// Type names of values that shells complete: by files, by folders, by models.
inline constexpr const char* kFileType = "FILE";
inline constexpr const char* kFolderType = "FOLDER";
inline constexpr const char* kModelType = "MODEL";

}  // namespace foretoken
