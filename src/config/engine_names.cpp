#include "config/engine_names.h"

#include <algorithm>
#include <cctype>

#include "base/files/json_object.h"
#include "base/text/ascii_text.h"
#include "config/engine_fields.h"

namespace foretoken {
namespace engine_names {

bool is_lower(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }
bool is_flag_char(char c) {
  return is_lower(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-';
}

// Whether the members that `harmless` names are as there, or left out, in an object.
bool asks_no_more(const std::string& value, const std::string& harmless) {
  const nlohmann::json given = parsed_json(value);
  if (!given.is_object()) return false;
  const nlohmann::json usual = parsed_json(harmless);
  for (const auto& [key, value_there] : usual.items()) {
    if (given.contains(key) && given.at(key) != value_there) return false;
  }
  return true;
}

}  // namespace engine_names

const VllmName* find_vllm_name(std::string_view name, FieldDoor door) {
  for (const VllmName& row : vllm_names()) {
    if (row.name == name && (row.doors & door) != 0) return &row;
  }
  return nullptr;
}

bool asks_for_nothing(const std::string& value) {
  if (value.empty() || lower_case(value) == "none") return true;
  const nlohmann::json given = parsed_json(value);
  return given.is_null() || (given.is_object() && given.empty());
}

NameVerdict judge_vllm_name(const VllmName& name, const std::string& value,
                            const std::string& model) {
  const std::string lower = lower_case(value);
  const std::vector<std::string> harmless = field_choices(name.harmless);
  const auto is_among = [&](const std::vector<std::string>& all) {
    return std::ranges::any_of(all, [&](const std::string& one) {
      if (lower == one || (one == "MODEL" && value == model)) return true;
      return one.front() == '{' && engine_names::asks_no_more(value, one);
    });
  };
  if (is_among(harmless)) return NameVerdict::kHarmless;
  const bool is_one = name.takes == VllmName::Takes::kValue;
  if (is_one && asks_for_nothing(value)) return NameVerdict::kHarmless;
  const bool off = name.takes == VllmName::Takes::kNothing && lower == "false";
  if (off && (name.refused || harmless.empty())) return NameVerdict::kHarmless;
  const bool is_error = name.refused && !is_among(field_choices(name.passed_over));
  return is_error ? NameVerdict::kRefused : NameVerdict::kWithoutEffect;
}

std::string with_field_names(const std::string& text) {
  std::string spelled;
  for (size_t i = 0; i < text.size();) {
    const bool flag = text.compare(i, 2, "--") == 0 && i + 2 < text.size() &&
                      engine_names::is_lower(text[i + 2]) &&
                      (i == 0 || !engine_names::is_flag_char(text[i - 1]));
    if (!flag) {
      spelled += text[i++];
      continue;
    }
    for (i += 2; i < text.size() && engine_names::is_flag_char(text[i]); ++i) {
      spelled += text[i] == '-' ? '_' : text[i];
    }
  }
  return spelled;
}

}  // namespace foretoken
