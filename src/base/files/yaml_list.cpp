#include "base/files/yaml_list.h"

#include <sstream>
#include <utility>

#include "base/files/json_object.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

bool is_utf8(const std::string& line) {
  std::string text = "\"";
  for (const char c : line) text += static_cast<unsigned char>(c) < 0x80 ? '.' : c;
  return Json::accept(text + "\"");
}

// Numbers, true, false and texts in double quotes are JSON; texts in single quotes are not.
Json plain_value(const std::string& text) {
  if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'') {
    return text.substr(1, text.size() - 2);
  }
  const Json value = parsed_ordered_json(text);
  const bool is_plain = value.is_boolean() || value.is_number() || value.is_string();
  return is_plain ? value : Json(text);
}

Json value_of(const std::string& text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return plain_value(text);
  Json list = Json::array();
  std::istringstream inner(text.substr(1, text.size() - 2));
  for (std::string item; std::getline(inner, item, ',');) {
    if (const std::string plain = trimmed_line(item); !plain.empty()) {
      list.push_back(plain_value(plain));
    }
  }
  return list;
}

// An entry in braces, on a line of its own. The sentence of what is wrong with it; empty: nothing.
std::string take_braces(const std::string& text, Json& entry) {
  Json value = parsed_ordered_json(text);
  if (!value.is_object()) {
    return "an entry in braces is one line of JSON, names and texts in double quotes, not '" +
           text + "'; or write a line 'name: value' for each name";
  }
  entry = std::move(value);
  return {};
}

// Takes in one line. The sentence of what is wrong with it; empty: nothing.
std::string take_line(std::string_view raw, Json& list) {
  const std::string_view line = before_comment(raw);
  std::string text = trimmed_line(line);
  if (text.empty() || text == "---") return {};
  const bool begins = text.rfind("- ", 0) == 0;
  if (begins) {
    list.push_back(Json::object());
    text = trimmed_line(std::string_view(text).substr(1));
  }
  if (begins && text.front() == '{') return take_braces(text, list.back());
  if (list.empty()) return "a list begins with '- name: value'";
  if (!begins && line.front() != ' ')
    return "lines of an entry are indented, and others begin with '- '";
  const size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0) {
    return "each line must be 'name: value', not '" + text + "'";
  }
  const std::string name = trimmed_line(std::string_view(text).substr(0, colon));
  const std::string value = trimmed_line(std::string_view(text).substr(colon + 1));
  if (list.back().contains(name)) return "'" + name + "' appears twice; keep one of them";
  if (value.empty()) return "'" + name + "' has no value; nothing is nested here";
  list.back()[name] = value_of(value);
  return {};
}

}  // namespace

std::string trimmed_line(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return std::string(line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin));
}

std::string_view before_comment(std::string_view line) {
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
      return line.substr(0, i);
    }
  }
  return line;
}

Result<nlohmann::ordered_json> parse_yaml_list(std::string_view text, const std::string& what) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(3);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && (text[begin] == '[' || text[begin] == '{')) {
    return parse_ordered_json(text, what);
  }
  Json list = Json::array();
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string fault = is_utf8(line) ? take_line(line, list) : "the line is not UTF-8";
    if (!fault.empty()) {
      return invalid_argument(what + ", line " + std::to_string(number) + ": " + fault);
    }
  }
  return list;
}

}  // namespace foretoken
