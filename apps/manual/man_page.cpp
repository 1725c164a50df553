#include "apps/manual/man_page.h"

#include <foretoken/version.h>

namespace foretoken {
namespace {

// Text of a line: no control characters of roff, hyphens as they are typed.
std::string roff(const std::string& text) {
  std::string line;
  for (const char c : text) {
    if (c == '\\') {
      line += "\\e";
    } else if (c == '-') {
      line += "\\-";
    } else {
      line += c == '\n' ? ' ' : c;
    }
  }
  return !line.empty() && (line[0] == '.' || line[0] == '\'') ? "\\&" + line : line;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : between) + word;
  return line;
}

void add_flag(const FlagRow& flag, std::string& page) {
  page += ".TP\n\\fB" + roff(joined(flag.names, ", ")) + "\\fR";
  if (!flag.choices.empty()) {
    page += " \\fI" + roff(joined(flag.choices, "|")) + "\\fR";
  } else if (!flag.value.empty()) {
    page += " \\fI" + roff(flag.value) + "\\fR";
  }
  page += "\n" + roff(flag.text.empty() ? "(no description)" : flag.text);
  if (!flag.default_text.empty()) page += " (default: " + roff(flag.default_text) + ")";
  page += "\n";
}

void add_command(const CommandRow& command, const std::string& path, std::string& page) {
  page += ".SS " + roff(path) + "\n" + roff(command.text) + "\n";
  for (const FlagRow& flag : command.flags) add_flag(flag, page);
  for (const CommandRow& below : command.commands) {
    add_command(below, path + " " + below.name, page);
  }
}

}  // namespace

std::string man_page(const CommandRow& table) {
  std::string page = ".TH FORETOKEN 1 \"\" \"foretoken " + roff(kVersion) +
                     "\" \"User Commands\"\n.SH NAME\n" + roff(table.name) + " \\- " +
                     roff(table.text) + "\n.SH SYNOPSIS\n\\fB" + roff(table.name) +
                     "\\fR \\fIcommand\\fR [\\fIflag\\fR...]\n.SH OPTIONS\n";
  for (const FlagRow& flag : table.flags) add_flag(flag, page);
  page += ".SH COMMANDS\n";
  for (const CommandRow& command : table.commands) {
    add_command(command, table.name + " " + command.name, page);
  }
  page +=
      ".SH ENVIRONMENT\n.TP\n\\fBHF_HOME\\fR, \\fBHF_HUB_CACHE\\fR, \\fBHF_TOKEN\\fR, "
      "\\fBHF_ENDPOINT\\fR\nWhere models of Hub ids are kept and fetched from.\n.TP\n"
      "\\fBFORETOKEN_MODELS_DIR\\fR\nFolder of the bundled models.\n.TP\n"
      "\\fBFORETOKEN_CUDA_PLUGIN\\fR\nThe file of the CUDA plug\\-in.\n"
      ".SH EXIT STATUS\n0, 1 after an error, 2 for a wrong command line.\n";
  return page;
}

}  // namespace foretoken
