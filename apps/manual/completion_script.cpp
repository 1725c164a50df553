#include "apps/manual/completion_script.h"

#include <algorithm>

namespace foretoken {
namespace {

std::string joined_words(const std::vector<std::string>& words, const char* between = " ") {
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

// What bash's function of values answers for a value without choices.
const char* bash_kind(Completion completion) {
  switch (completion) {
    case Completion::kFiles:
      return "@files";
    case Completion::kFolders:
      return "@folders";
    case Completion::kModels:
      return "@models";
    default:
      return "@nothing";
  }
}

std::string bash_values(const Visit& visited) {
  std::string values;
  for (const FlagRow& flag : visited.command.flags) {
    if (flag.value.empty() || flag.positional) continue;
    const std::string words =
        flag.choices.empty() ? bash_kind(flag.completion) : joined_words(flag.choices);
    for (const std::string& name : flag.names) {
      values += "    " + quoted(visited.path + " " + name) + ") echo " + quoted(words) + " ;;\n";
    }
  }
  return values;
}

// How bash offers words; a kind as bash_values() names it offers what the machine has.
std::string bash_offer(const std::string& program) {
  return "_" + program +
         "_offer() {\n"
         "  local word=$2\n"
         "  case $1 in\n"
         "    @models)\n"
         "      mapfile -t COMPREPLY < <(compgen -W \"$(\"$3\" model-names 2>/dev/null)\" -- "
         "\"$word\"; compgen -f -- \"$word\") ;;\n"
         "    @files) mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;\n"
         "    @folders) mapfile -t COMPREPLY < <(compgen -d -- \"$word\") ;;\n"
         "    @nothing) COMPREPLY=(); compopt +o default 2>/dev/null ;;\n"
         "    *) mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$word\") ;;\n"
         "  esac\n"
         "  [[ $1 != @files && $1 != @folders ]] || compopt -o filenames 2>/dev/null\n"
         "  return 0\n"
         "}\n";
}

// Words that lead on to a command below: the same search in every shell.
std::string bash_script(const CommandRow& table) {
  std::string commands;
  std::string flags;
  std::string values;
  std::string arguments;
  for (const Visit& visited : all_commands(table)) {
    const std::string path = quoted(visited.path);
    const std::string names = joined_words(command_names(visited.command));
    if (!names.empty()) commands += "    " + path + ") echo " + quoted(names) + " ;;\n";
    flags +=
        "    " + path + ") echo " + quoted(joined_words(flag_names(visited.command))) + " ;;\n";
    values += bash_values(visited);
    if (visited.command.argument != Completion::kNothing) {
      arguments += "    " + path + ") echo " + bash_kind(visited.command.argument) + " ;;\n";
    }
  }
  const std::string& program = table.name;
  return "# bash completion of " + program + "\n_" + program + "_commands() {\n  case \"$1\" in\n" +
         commands + "  esac\n}\n_" + program + "_flags() {\n  case \"$1\" in\n" + flags +
         "  esac\n}\n_" + program + "_values() {\n  case \"$1\" in\n" + values + "  esac\n}\n_" +
         program + "_arguments() {\n  case \"$1\" in\n" + arguments + "  esac\n}\n" +
         bash_offer(program) + "_" + program +
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
         "  [[ -n $values || $word != -* ]] || values=$(_" +
         program +
         "_flags \"$path\")\n"
         "  [[ -n $values ]] || values=$(_" +
         program +
         "_commands \"$path\")\n"
         "  [[ -n $values ]] || values=$(_" +
         program +
         "_arguments \"$path\")\n"
         "  _" +
         program +
         "_offer \"$values\" \"$word\" \"${COMP_WORDS[0]}\"\n"
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

// What follows the last colon of a specification of _arguments.
std::string zsh_action(const FlagRow& flag, const std::string& program) {
  if (!flag.choices.empty()) return "(" + joined_words(flag.choices) + ")";
  switch (flag.completion) {
    case Completion::kFiles:
      return "_files";
    case Completion::kFolders:
      return "_files -/";
    case Completion::kModels:
      return "_" + program + "_models";
    default:
      return " ";
  }
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
        action = ":" + zsh_text(flag.value) + ":" + zsh_action(flag, program);
      }
      script += " \\\n    " + quoted("*" + name + "[" + zsh_text(flag.text) + "]" + action);
    }
  }
  const bool models = command.argument == Completion::kModels;
  const std::string rest = models ? "'*:model:_" + program + "_models'" : "'*:file:_files'";
  if (command.commands.empty()) return script + " \\\n    " + rest + "\n}\n";
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
  std::string script = "#compdef " + table.name + "\n_" + table.name +
                       "_models() {\n  compadd -- ${(f)\"$($words[1] model-names 2>/dev/null)\"}\n"
                       "  _files\n}\n";
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
  const std::string below = joined_words(command_names(visited.command));
  if (!below.empty()) return condition + "not __fish_seen_subcommand_from " + below;
  return condition + "true";
}

// What fish offers for the flag's value.
std::string fish_values(const FlagRow& flag, const std::string& program) {
  if (!flag.choices.empty()) return "-f -a " + quoted(joined_words(flag.choices)) + " ";
  if (flag.completion == Completion::kModels) return "-a '(" + program + " model-names)' ";
  return flag.completion == Completion::kNothing && !flag.value.empty() ? "-f " : "";
}

std::string fish_script(const CommandRow& table) {
  std::string script = "# fish completion of " + table.name + "\n";
  for (const Visit& visited : all_commands(table)) {
    const std::string start =
        "complete -c " + table.name + " -n " + quoted(fish_condition(visited)) + " ";
    for (const CommandRow& below : visited.command.commands) {
      script += start + "-f -a " + below.name + " -d " + quoted(short_text(below.text)) + "\n";
    }
    if (visited.command.argument == Completion::kModels) {
      script += start + "-a '(" + table.name + " model-names)'\n";
    }
    for (const FlagRow& flag : visited.command.flags) {
      if (flag.positional) continue;
      script += start;
      for (const std::string& name : flag.names) {
        const bool is_long = name.rfind("--", 0) == 0;
        script += (is_long ? "-l " + name.substr(2) : "-s " + name.substr(1)) + " ";
      }
      script += fish_values(flag, table.name);
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
