#include "apps/options/dotted_flags.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/options/engine_options.h"
#include "base/files/json_object.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* kNameLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

// "--flag.a.b+=value", cut into pieces.
struct DottedFlag {
  std::string flag;                // "--flag"
  std::vector<std::string> parts;  // "a", "b"
  std::string name;                // "--flag.a.b"
  std::string value;
  bool has_value = false;
  bool appends = false;
};

// False for any other argument.
bool read_dotted(const std::string& argument, DottedFlag* read) {
  if (argument.rfind("--", 0) != 0) return false;
  const size_t equals = std::min(argument.find('='), argument.size());
  read->name = argument.substr(0, equals);
  read->has_value = equals < argument.size();
  if (read->has_value) read->value = argument.substr(equals + 1);
  read->appends = read->name.back() == '+';
  if (read->appends) read->name.pop_back();
  const size_t dot = read->name.find('.');
  if (dot == std::string::npos || dot < 3) return false;
  read->flag = read->name.substr(0, dot);
  if (read->flag.find_first_not_of(kNameLetters) != std::string::npos) return false;
  for (size_t begin = dot + 1; begin <= read->name.size();) {
    const size_t end = std::min(read->name.find('.', begin), read->name.size());
    read->parts.push_back(read->name.substr(begin, end - begin));
    begin = end + 1;
  }
  // "--fim-qwen-1.5b-default" has a number, and no parts.
  const auto is_name = [](const std::string& part) {
    if (part.empty() || part.find_first_not_of(kNameLetters) != std::string::npos) return false;
    return part.front() < '0' || part.front() > '9' ||
           part.find_first_not_of("0123456789") == std::string::npos;
  };
  return std::all_of(read->parts.begin(), read->parts.end(), is_name);
}

std::string shown(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json value_of(const std::string& text) {
  json value = parsed_ordered_json(text);
  if (!value.is_discarded()) return value;
  std::string number = text;
  if (human_integer()(number).empty() && number != text) return json::parse(number);
  return text;
}

json list_of(const std::string& text) {
  json list = json::array();
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    list.push_back(value_of(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return list;
}

Status add_part(const DottedFlag& given, json* whole) {
  json value = given.appends ? list_of(given.value) : value_of(given.value);
  json* place = whole;
  std::string name = given.flag;
  for (const std::string& part : given.parts) {
    if (!place->is_object()) {
      return invalid_argument(name + " has a value already, and " + given.name +
                              " would be a part of it; give one of them");
    }
    name += "." + part;
    const bool last = name.size() == given.name.size();
    place = &place->emplace(part, last ? json() : json::object()).first.value();
  }
  if (place->is_array() && value.is_array()) {
    place->insert(place->end(), value.begin(), value.end());
  } else if (place->is_object() && !place->empty() && value != *place) {
    return invalid_argument(given.name + " has parts already; give it or them");
  } else if (!place->is_null() && value != *place) {
    return invalid_argument(given.name + " is given twice, as " + shown(*place) + " and as " +
                            shown(value) + "; give it once");
  } else {
    *place = std::move(value);
  }
  return {};
}

// A flag of dots among the arguments.
struct Folded {
  json whole = json::object();
  size_t index = 0;  // of its JSON among the arguments that are left
};

Status check_whole_flags(const std::vector<std::string>& arguments,
                         const std::map<std::string, Folded>& folded) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto found = folded.find(arguments[i].substr(0, arguments[i].find('=')));
    if (found == folded.end() || found->second.index == i + 1) continue;
    return invalid_argument(found->first + " and " + found->first + "." +
                            found->second.whole.begin().key() +
                            " contradict each other; give one JSON value or only parts");
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> fold_dotted_flags(const std::vector<std::string>& arguments) {
  std::vector<std::string> rest;
  std::map<std::string, Folded> folded;
  for (size_t i = 0; i < arguments.size(); ++i) {
    DottedFlag given;
    if (!read_dotted(arguments[i], &given)) {
      rest.push_back(arguments[i]);
      continue;
    }
    if (!given.has_value && ++i == arguments.size()) {
      return invalid_argument(arguments.back() + " needs a value");
    }
    if (!given.has_value) given.value = arguments[i];
    const auto [place, is_new] = folded.try_emplace(given.flag);
    if (is_new) {
      rest.push_back(given.flag);
      place->second.index = rest.size();
      rest.emplace_back();
    }
    FT_RETURN_IF_ERROR(add_part(given, &place->second.whole));
  }
  FT_RETURN_IF_ERROR(check_whole_flags(rest, folded));
  for (const auto& [flag, part] : folded) {
    rest[part.index] = shown(part.whole);
  }
  return rest;
}

}  // namespace foretoken
