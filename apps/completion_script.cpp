#include "completion_script.h"

#include <algorithm>

namespace foretoken {
namespace {

std::string joined(const std::vector<std::string>& words, const char* between = " ") {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : between) + word;
  return line;
}

// Up to the first full sentence, for a list of choices.
std::string short_text(const std::string& text) {
  return text.substr(0, std::min({text.find('\n'), text.find(": "), text.find(" ("), size_t{70}}));
}

std::string quoted(const std::string& text) {
  std::string line = "'";
  for (const char c : text) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return line + "'";
}

struct Visit {
  const CommandRow& command;
  std::string path;  // "bench latency"; empty for the program itself
};

void visit(const CommandRow& command, const std::string& path, std::vector<Visit>& visits) {
  visits.push_back({command, path});
  for (const CommandRow& below : command.commands) {
    visit(below, path + (path.empty() ? "" : " ") + below.name, visits);
  }
}

std::vector<Visit> all_commands(const CommandRow& table) {
  std::vector<Visit> visits;
  visit(table, "", visits);
  return visits;
}

std::vector<std::string> command_names(const CommandRow& command) {
  std::vector<std::string> names;
  for (const CommandRow& below : command.commands) names.push_back(below.name);
  return names;
}

std::vector<std::string> flag_names(const CommandRow& command) {
  std::vector<std::string> names;
  for (const FlagRow& flag : command.flags) {
    if (!flag.positional) names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  return names;
}

// Words that lead on to a command below: the same search in every shell.
std::string bash_script(const CommandRow& table) {
  std::string commands;
  std::string flags;
  std::string values;
  for (const Visit& visited : all_commands(table)) {
    const std::string path = quoted(visited.path);
    const std::string names = joined(command_names(visited.command));
    if (!names.empty()) commands += "    " + path + ") echo " + quoted(names) + " ;;\n";
    flags += "    " + path + ") echo " + quoted(joined(flag_names(visited.command))) + " ;;\n";
    for (const FlagRow& flag : visited.command.flags) {
      if (flag.choices.empty() || flag.positional) continue;
      for (const std::string& name : flag.names) {
        values += "    " + quoted(visited.path + " " + name) + ") echo " +
                  quoted(joined(flag.choices)) + " ;;\n";
      }
    }
  }
  const std::string& program = table.name;
  return "# bash completion of " + program + "\n_" + program + "_commands() {\n  case \"$1\" in\n" +
         commands + "  esac\n}\n_" + program + "_flags() {\n  case \"$1\" in\n" + flags +
         "  esac\n}\n_" + program + "_values() {\n  case \"$1\" in\n" + values + "  esac\n}\n_" +
         program +
         "() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path='' i\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    if [[ \" $(_" +
         program +
         "_commands \"$path\") \" == *\" ${COMP_WORDS[i]} \"* ]]; then\n"
         "      path=\"${path:+$path }${COMP_WORDS[i]}\"\n"
         "    fi\n"
         "  done\n"
         "  local values\n"
         "  values=$(_" +
         program +
         "_values \"$path $before\")\n"
         "  if [[ -n $values ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$word\")\n"
         "  elif [[ $word == -* ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$(_" +
         program +
         "_flags \"$path\")\" -- \"$word\")\n"
         "  else\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$(_" +
         program +
         "_commands \"$path\")\" -- \"$word\")\n"
         "  fi\n"
         "}\ncomplete -o default -F _" +
         program + " " + program + "\n";
}

// Text inside the brackets of a specification of _arguments or _describe.
std::string zsh_text(const std::string& text) {
  std::string line;
  for (const char c : short_text(text)) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') line += '\\';
    line += c;
  }
  return line;
}

std::string zsh_function(const std::string& program, const std::string& path) {
  std::string name = "_" + program + (path.empty() ? "" : "_" + path);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

std::string zsh_command(const Visit& visited, const std::string& program) {
  const CommandRow& command = visited.command;
  std::string script = zsh_function(program, visited.path) + "() {\n";
  if (!command.commands.empty()) script += "  local line state\n";
  script += "  _arguments -s";
  if (!command.commands.empty()) script += " -C";
  for (const FlagRow& flag : command.flags) {
    if (flag.positional) continue;
    for (const std::string& name : flag.names) {
      std::string action;
      if (!flag.value.empty()) {
        action = ":" + zsh_text(flag.value) + ":" +
                 (flag.choices.empty() ? "_files" : "(" + joined(flag.choices) + ")");
      }
      script += " \\\n    " + quoted("*" + name + "[" + zsh_text(flag.text) + "]" + action);
    }
  }
  if (command.commands.empty()) return script + " \\\n    '*:file:_files'\n}\n";
  script +=
      " \\\n    '1:command:->command' '*::argument:->argument'\n  case $state in\n"
      "    command)\n      local -a commands=(";
  for (const CommandRow& below : command.commands) {
    script += "\n        " + quoted(below.name + ":" + zsh_text(below.text));
  }
  script += ")\n      _describe command commands ;;\n    argument)\n      case $line[1] in\n";
  for (const CommandRow& below : command.commands) {
    const std::string path = visited.path + (visited.path.empty() ? "" : " ") + below.name;
    script += "        " + below.name + ") " + zsh_function(program, path) + " ;;\n";
  }
  return script + "      esac ;;\n  esac\n}\n";
}

std::string zsh_script(const CommandRow& table) {
  std::string script = "#compdef " + table.name + "\n";
  for (const Visit& visited : all_commands(table)) script += zsh_command(visited, table.name);
  return script + "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n  _" + table.name +
         " \"$@\"\nelse\n  compdef _" + table.name + " " + table.name + "\nfi\n";
}

// The condition under which a line of fish's holds: the command was given, none below it yet.
std::string fish_condition(const Visit& visited) {
  std::string condition;
  std::string word;
  for (const char c : visited.path + " ") {
    if (c != ' ') {
      word += c;
      continue;
    }
    if (!word.empty()) condition += "__fish_seen_subcommand_from " + word + "; and ";
    word.clear();
  }
  const std::string below = joined(command_names(visited.command));
  if (!below.empty()) return condition + "not __fish_seen_subcommand_from " + below;
  return condition + "true";
}

std::string fish_script(const CommandRow& table) {
  std::string script = "# fish completion of " + table.name + "\n";
  for (const Visit& visited : all_commands(table)) {
    const std::string start =
        "complete -c " + table.name + " -n " + quoted(fish_condition(visited)) + " ";
    for (const CommandRow& below : visited.command.commands) {
      script += start + "-f -a " + below.name + " -d " + quoted(short_text(below.text)) + "\n";
    }
    for (const FlagRow& flag : visited.command.flags) {
      if (flag.positional) continue;
      script += start;
      for (const std::string& name : flag.names) {
        const bool is_long = name.rfind("--", 0) == 0;
        script += (is_long ? "-l " + name.substr(2) : "-s " + name.substr(1)) + " ";
      }
      if (!flag.choices.empty()) script += "-f -a " + quoted(joined(flag.choices)) + " ";
      script += (flag.value.empty() ? "-d " : "-r -d ") + quoted(short_text(flag.text)) + "\n";
    }
  }
  return script;
}

}  // namespace

Result<std::string> completion_script(const std::string& shell, const CommandRow& table) {
  if (shell == "bash") return bash_script(table);
  if (shell == "zsh") return zsh_script(table);
  if (shell == "fish") return fish_script(table);
  return invalid_argument("there is no completion for the shell '" + shell +
                          "'; name bash, zsh or fish");
}

}  // namespace foretoken
