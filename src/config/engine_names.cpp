#include "config/engine_names.h"

#include <cctype>

#include "base/text/ascii_text.h"
#include "config/engine_fields.h"

namespace foretoken {
namespace engine_names {

bool is_lower(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }
bool is_flag_char(char c) {
  return is_lower(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-';
}

}  // namespace engine_names

const VllmName* find_vllm_name(std::string_view name, FieldDoor door) {
  for (const VllmName& row : vllm_names()) {
    if (row.name == name && (row.doors & door) != 0) return &row;
  }
  return nullptr;
}

NameVerdict judge_vllm_name(const VllmName& name, const std::string& value,
                            const std::string& model) {
  const std::string lower = lower_case(value);
  const std::vector<std::string> harmless = field_choices(name.harmless);
  for (const std::string& one : harmless) {
    if (lower == one || (one == "MODEL" && value == model)) return NameVerdict::kHarmless;
  }
  const bool off = name.takes == VllmName::Takes::kNothing && lower == "false";
  if (off && (name.refused || harmless.empty())) return NameVerdict::kHarmless;
  return name.refused ? NameVerdict::kRefused : NameVerdict::kWithoutEffect;
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
