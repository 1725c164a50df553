#include "apps/flags/usage_message.h"

#include <algorithm>
#include <optional>

#include "apps/flags/flag_table.h"
#include "apps/flags/foreign_flags.h"
#include "apps/flags/unknown_flag.h"
#include "base/text/nearest_name.h"

namespace foretoken {
namespace {

// What is left of `text` behind `start`, if it begins so.
std::optional<std::string> behind(const std::string& text, const std::string& start) {
  if (text.rfind(start, 0) != 0) return std::nullopt;
  return text.substr(start.size());
}

bool begins_with(const std::string& text, const char* start) { return text.rfind(start, 0) == 0; }

const char* what_a_type_takes(const std::string& type) {
  if (begins_with(type, "UINT")) return "an integer from 0 up";
  if (begins_with(type, "INT")) return "an integer";
  if (begins_with(type, "FLOAT")) return "a number";
  if (begins_with(type, "BOOL")) return "true or false";
  if (begins_with(type, "N[")) return "an integer like 4096, 4k (4000) or 4K (4096)";
  return nullptr;
}

// "Could not convert: --max-tokens = 3x". Values of a list are divided by commas there.
std::string conversion_message(const CLI::App& command, const std::string& text) {
  const size_t equals = text.find(" = ");
  if (equals == std::string::npos) return text;
  const std::string name = text.substr(0, equals);
  const std::string given = text.substr(equals + 3);
  const CLI::Option* option = looks_like_flag(name) ? find_flag(command, name) : nullptr;
  const char* takes = option == nullptr ? nullptr : what_a_type_takes(option->get_type_name());
  const bool is_list = option != nullptr && option->get_items_expected_max() > 1;
  if (takes == nullptr) return name + " cannot be '" + given + "'";
  return name + (is_list ? ": each value must be " : " must be ") + takes + ", not '" + given + "'";
}

// "0.5" of "0.500000", and "2" of "2.000000".
std::string short_number(std::string number) {
  if (number.find('.') == std::string::npos) return number;
  number.resize(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number;
}

// Of CLI11's "0.000000 to 86400.000000"; a bound of hundreds of digits is none.
std::string bounds_text(const std::string& bounds) {
  const size_t middle = bounds.find(" to ");
  if (middle == std::string::npos) return "in " + bounds;
  const std::string low = short_number(bounds.substr(0, middle));
  const std::string high = short_number(bounds.substr(middle + 4));
  return high.size() > 30 ? "at least " + low : "from " + low + " to " + high;
}

// "--color: blue not in {auto,always,never}" and "--port: Value 0 not in range 1 to 65535".
std::string validation_message(const CLI::App& command, const std::string& text) {
  const size_t colon = text.find(": ");
  const std::string name = text.substr(0, std::min(colon, text.size()));
  const CLI::Option* option = looks_like_flag(name) ? find_flag(command, name) : nullptr;
  if (option == nullptr || colon == std::string::npos) return text;
  const std::string problem = text.substr(colon + 2);
  const size_t range = problem.find(" not in range ");
  if (const auto value = behind(problem, "Value "); value && range != std::string::npos) {
    const std::string bounds = problem.substr(range + sizeof(" not in range ") - 1);
    return name + " must be " + bounds_text(bounds) + ", not " + problem.substr(6, range - 6);
  }
  const size_t set = problem.rfind(" not in {");
  const std::string given = problem.substr(0, set);
  std::vector<std::string> choices = choices_of(*option);
  // Where the choices are numbers, CLI11 has nothing to say of what is none.
  if (set == std::string::npos && (choices.empty() || given.find(' ') != std::string::npos)) {
    return text;
  }
  std::string list;
  for (const std::string& choice : choices) list += (list.empty() ? "" : ", ") + choice;
  return name + " must be one of " + list + ", not '" + given + "'" +
         nearest_name_hint(given, choices, "");
}

// "--prompt: 1 required TEXT missing".
std::string mismatch_message(const std::string& text) {
  const size_t colon = text.find(": ");
  const bool missing = text.find(" required ") != std::string::npos;
  return missing && colon != std::string::npos ? text.substr(0, colon) + " needs a value" : text;
}

}  // namespace

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what();
  const CLI::App& command = chosen_command(app);
  // Without a command that it knows CLI11 misses one before it looks at what was given instead.
  const bool unknown = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                       (app.get_subcommands().empty() && !app.remaining().empty());
  if (unknown) return unknown_argument_message(app);
  if (const auto rest = behind(text, "Could not convert: ")) {
    return conversion_message(command, *rest);
  }
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) {
    return validation_message(command, text);
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) return mismatch_message(text);
  return text;
}

}  // namespace foretoken
