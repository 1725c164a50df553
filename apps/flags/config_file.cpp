#include "apps/flags/config_file.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "apps/terminal/file_text.h"
#include "base/yaml_list.h"

namespace foretoken {
namespace {

std::string unquoted(const std::string& text) {
  const bool quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
                      text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// "[a, b]" of plain words; JSON lists of objects or lists stay one value.
std::vector<std::string> list_values(const std::string& text) {
  if (text.find_first_of("{[", 1) != std::string::npos) return {text};
  std::vector<std::string> values;
  std::istringstream inner(text.substr(1, text.size() - 2));
  for (std::string item; std::getline(inner, item, ',');) {
    if (!trimmed_line(item).empty()) values.push_back(unquoted(trimmed_line(item)));
  }
  return values;
}

struct Entry {
  std::string name;
  std::vector<std::string> values;
};

std::string flag_name(std::string key) {
  const size_t end = std::min(key.find('.'), key.size());
  std::replace(key.begin(), key.begin() + static_cast<std::ptrdiff_t>(end), '_', '-');
  return key;
}

Status wrong_line(const std::string& name, int line, const std::string& what) {
  return invalid_argument(name + ", line " + std::to_string(line) + ": " + what);
}

Status read_line(const std::string& raw, const std::string& where, int number,
                 std::vector<Entry>* entries) {
  const std::string_view line = before_comment(raw);
  const std::string text = trimmed_line(line);
  if (text.empty() || text == "---") return {};
  if (text.rfind("- ", 0) == 0 || text == "-") {
    if (entries->empty()) return wrong_line(where, number, "a list entry needs a name before it");
    entries->back().values.push_back(unquoted(trimmed_line(text.substr(1))));
    return {};
  }
  if (line.front() == ' ' || line.front() == '\t') {
    return wrong_line(where, number, "nested values are written as JSON: name: '{\"a\": 1}'");
  }
  const size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0) {
    return wrong_line(where, number, "each line must be 'name: value', not '" + text + "'");
  }
  Entry& entry = entries->emplace_back(Entry{flag_name(trimmed_line(text.substr(0, colon))), {}});
  const std::string value = trimmed_line(text.substr(colon + 1));
  if (value.empty()) return {};
  const bool list = value.front() == '[' && value.back() == ']';
  if (list) {
    entry.values = list_values(value);
  } else {
    entry.values = {unquoted(value)};
  }
  return {};
}

void append_flags(const Entry& entry, std::vector<std::string>* flags) {
  const std::string value = entry.values.size() == 1 ? entry.values.front() : "";
  if (value == "true" || value == "True") return flags->push_back("--" + entry.name);
  if (value == "false" || value == "False") return flags->push_back("--no-" + entry.name);
  if (entry.values.empty()) return;
  // So that the value of a switch, and one that looks like a flag, are told by their name.
  if (!value.empty()) return flags->push_back("--" + entry.name + "=" + value);
  flags->push_back("--" + entry.name);
  flags->insert(flags->end(), entry.values.begin(), entry.values.end());
}

Result<std::vector<Entry>> parse_entries(const std::string& text, const std::string& name) {
  std::vector<Entry> entries;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    FT_RETURN_IF_ERROR(read_line(line, name, ++number, &entries));
  }
  return entries;
}

bool is_given(const std::string& name, const std::vector<std::string>& arguments) {
  const auto names_it = [&](const std::string& argument) {
    const std::string flag = argument.substr(0, argument.find('='));
    // A flag as a whole stands for its parts ("--flag.part"), and they for it.
    return flag == "--" + name || flag == "--no-" + name || flag.rfind("--" + name + ".", 0) == 0 ||
           ("--" + name).rfind(flag + ".", 0) == 0;
  };
  return std::any_of(arguments.begin(), arguments.end(), names_it);
}

}  // namespace

Result<std::vector<std::string>> expand_config_file(std::vector<std::string> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string file;
    size_t count = 1;
    if (arguments[i] == "--config" && i + 1 < arguments.size()) {
      file = arguments[i + 1];
      count = 2;
    } else if (arguments[i].rfind("--config=", 0) == 0) {
      file = arguments[i].substr(9);
    } else {
      continue;
    }
    FT_ASSIGN_OR_RETURN(const std::string text, read_input_file(file));
    FT_ASSIGN_OR_RETURN(const std::vector<Entry> entries, parse_entries(text, file));
    const auto begin = arguments.begin() + static_cast<std::ptrdiff_t>(i);
    arguments.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
    std::vector<std::string> flags;
    for (const Entry& entry : entries) {
      const bool model =
          entry.name == "model" && arguments.size() > 1 && i > 1 && arguments[1].rfind('-', 0) != 0;
      if (!model && !is_given(entry.name, arguments)) append_flags(entry, &flags);
    }
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return arguments;
  }
  return arguments;
}

}  // namespace foretoken
