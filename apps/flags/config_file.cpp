#include "apps/flags/config_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "apps/terminal/file_text.h"
#include "base/files/json_object.h"
#include "base/files/yaml_flow.h"
#include "base/files/yaml_list.h"

namespace foretoken {
namespace {

std::string unquoted(const std::string& text) {
  const bool quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
                      text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// A value in braces or brackets as JSON.
std::string flow_text(const std::string& text) {
  const auto flow = parse_yaml_flow(text);
  return flow ? flow->dump() : text;
}

// "[a, b]" of plain words; JSON lists of objects or lists stay one value.
std::vector<std::string> list_values(const std::string& text) {
  if (text.find_first_of("{[", 1) != std::string::npos) return {flow_text(text)};
  std::vector<std::string> values;
  std::istringstream inner(text.substr(1, text.size() - 2));
  for (std::string item; std::getline(inner, item, ',');) {
    if (!trimmed_line(item).empty()) values.push_back(unquoted(trimmed_line(item)));
  }
  return values;
}

struct Entry {
  std::string name;  // of a nested value with those above it: "speculative-config.method"
  std::vector<std::string> values;
  bool is_list = false;  // a line for each of them
};

// A name without a value, under which others may stand.
struct Level {
  size_t indent = 0;
  std::string name;
};

// What has been read, and where the next line stands.
struct Reading {
  std::vector<Entry> entries;
  std::vector<Level> levels;
  bool in_block = false;    // the lines of a text ("name: |") are its value
  size_t block_indent = 0;  // of the first of them; 0: none has come
};

size_t indent_of(std::string_view line) {
  return std::min(line.find_first_not_of(" \t"), line.size());
}

std::string flag_name(std::string key) {
  const size_t end = std::min(key.find('.'), key.size());
  std::replace(key.begin(), key.begin() + static_cast<std::ptrdiff_t>(end), '_', '-');
  return key;
}

// The value behind a name; "null" and "~" are none. Braces become JSON.
std::vector<std::string> values_of(const std::string& value) {
  if (value.empty() || value == "null" || value == "~") return {};
  if (value.front() == '{' && value.back() == '}') return {flow_text(value)};
  if (value.front() == '[' && value.back() == ']') return list_values(value);
  return {unquoted(value)};
}

bool begins_block(const std::string& value) {
  return value == "|" || value == "|-" || value == "|+" || value == ">" || value == ">-";
}

// YAML's anchors, aliases and tags are no texts, and mean nothing here.
Status check_plain(const std::string& value, const std::string& wrong) {
  if (value.size() < 2 || std::string("&*!").find(value.front()) == std::string::npos) return {};
  return invalid_argument(wrong + "anchors (&), aliases (*) and tags (!) of YAML are not read; " +
                          "write the value itself, or '" + value +
                          "' in quotes where it is a text");
}

// "name: value"; a name that stands further in than the one before belongs to it.
Status read_entry(const std::string& text, size_t indent, const std::string& wrong,
                  Reading* reading) {
  while (!reading->levels.empty() && reading->levels.back().indent >= indent) {
    reading->levels.pop_back();
  }
  if (indent > 0 && reading->levels.empty()) {
    return invalid_argument(wrong + "nested values need a name without a value before them");
  }
  const size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0) {
    return invalid_argument(wrong + "each line must be 'name: value', not '" + text + "'");
  }
  const std::string key = unquoted(trimmed_line(text.substr(0, colon)));
  const std::string name = indent == 0 ? flag_name(key) : reading->levels.back().name + "." + key;
  const std::string value = trimmed_line(text.substr(colon + 1));
  FT_RETURN_IF_ERROR(check_plain(value, wrong));
  reading->in_block = begins_block(value);
  reading->block_indent = 0;
  if (value.empty() || reading->in_block) reading->levels.push_back({indent, name});
  std::vector<std::string> values = values_of(value);
  if (reading->in_block) values = {""};
  if (indent > 0 && value.size() > 1 && value.front() == '[') values = {flow_text(value)};
  reading->entries.push_back({name, std::move(values)});
  return {};
}

// False where the text that a "|" began has ended.
bool read_block(const std::string& raw, Reading* reading) {
  const size_t indent = indent_of(raw);
  const bool blank = indent == raw.size();
  if (!blank && indent <= reading->levels.back().indent) {
    reading->in_block = false;
    return false;
  }
  if (reading->block_indent == 0 && !blank) reading->block_indent = indent;
  std::string& text = reading->entries.back().values.front();
  text += (text.empty() ? "" : "\n") +
          (blank ? std::string() : raw.substr(std::min(indent, reading->block_indent)));
  return true;
}

Status read_line(const std::string& raw, const std::string& wrong, Reading* reading) {
  if (reading->in_block && read_block(raw, reading)) return {};
  const std::string_view line = before_comment(raw);
  const std::string text = trimmed_line(line);
  if (text.empty() || text == "---" || text == "..." || text.front() == '%') return {};
  if (text.rfind("- ", 0) == 0 || text == "-") {
    if (reading->entries.empty()) {
      return invalid_argument(wrong + "a list entry needs a name before it");
    }
    FT_RETURN_IF_ERROR(check_plain(trimmed_line(text.substr(1)), wrong));
    const std::string item = trimmed_line(text.substr(1));
    reading->entries.back().values.push_back(item.starts_with('{') ? flow_text(item)
                                                                   : unquoted(item));
    reading->entries.back().is_list = true;
    return {};
  }
  return read_entry(text, indent_of(line), wrong, reading);
}

// The entries of a list that is nested, as JSON; what is no JSON is a text.
std::string list_text(const std::vector<std::string>& values) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const std::string& value : values) {
    nlohmann::ordered_json parsed = parsed_ordered_json(value);
    list.push_back(parsed.is_discarded() ? nlohmann::ordered_json(value) : std::move(parsed));
  }
  return list.dump();
}

void append_flags(const Entry& entry, std::vector<std::string>* flags) {
  if (entry.name.find('.') != std::string::npos && !entry.values.empty()) {
    flags->push_back("--" + entry.name + "=" +
                     (entry.is_list ? list_text(entry.values) : entry.values.front()));
    return;
  }
  const std::string value = entry.values.size() == 1 ? entry.values.front() : "";
  if (value == "true" || value == "True") return flags->push_back("--" + entry.name);
  if (value == "false" || value == "False") return flags->push_back("--no-" + entry.name);
  if (entry.values.empty()) return;
  // So that the value of a switch, and one that looks like a flag, are told by their name.
  if (!value.empty()) return flags->push_back("--" + entry.name + "=" + value);
  flags->push_back("--" + entry.name);
  flags->insert(flags->end(), entry.values.begin(), entry.values.end());
}

std::string plain_text(const nlohmann::ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// A file that is a JSON object, which is YAML, too: its members are flags.
Result<std::vector<Entry>> parse_json_entries(const std::string& text, const std::string& name) {
  const nlohmann::ordered_json object = parsed_ordered_json(text);
  if (!object.is_object()) {
    return invalid_argument(name + ": begins as JSON and is no valid object of it");
  }
  std::vector<Entry> entries;
  for (const auto& [key, value] : object.items()) {
    Entry entry{flag_name(key), {}};
    const auto is_plain = [](const auto& item) { return !item.is_structured(); };
    if (value.is_array() && std::all_of(value.begin(), value.end(), is_plain)) {
      for (const auto& item : value) entry.values.push_back(plain_text(item));
    } else if (!value.is_null()) {
      entry.values = {plain_text(value)};
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Appends the lines that close the braces and brackets of a value that `line` leaves open. Returns
// how many; a value that nothing closes stays as it is.
int join_open_lines(std::istringstream& lines, std::string* line) {
  const std::string_view first = before_comment(*line);
  const size_t bracket = first.find_first_of("{[");
  const size_t colon = first.find(':');
  if (bracket == std::string_view::npos || colon == std::string_view::npos || colon > bracket) {
    return 0;
  }
  if (open_brackets(first.substr(bracket)) <= 0) return 0;
  const std::istringstream::pos_type begin = lines.tellg();
  std::string whole(first);
  int count = 0;
  for (std::string more; std::getline(lines, more);) {
    ++count;
    whole += " " + trimmed_line(before_comment(more));
    if (open_brackets(std::string_view(whole).substr(bracket)) > 0) continue;
    *line = whole;
    return count;
  }
  lines.clear();
  lines.seekg(begin);
  return 0;
}

Result<std::vector<Entry>> parse_entries(std::string text, const std::string& name) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string::npos && text[begin] == '{') return parse_json_entries(text, name);
  Reading reading;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = name + ", line " + std::to_string(++number) + ": ";
    if (!reading.in_block) number += join_open_lines(lines, &line);
    FT_RETURN_IF_ERROR(read_line(line, where, &reading));
  }
  return std::move(reading.entries);
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
    FT_ASSIGN_OR_RETURN(std::string text, read_input_file(file));
    FT_ASSIGN_OR_RETURN(const std::vector<Entry> entries, parse_entries(std::move(text), file));
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
