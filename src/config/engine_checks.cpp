#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "config/engine_fields.h"

namespace foretoken {
namespace engine_text {

std::string text(bool value) { return value ? "1" : "0"; }
std::string text(const std::string& value) { return value; }
std::string text(const std::vector<int>& values) {
  std::string list;
  for (const int value : values) list += (list.empty() ? "" : ",") + std::to_string(value);
  return list;
}
template <class Number>
std::string text(Number value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

// "a, b or c".
std::string one_of(const std::vector<std::string>& choices) {
  std::string list;
  for (size_t i = 0; i < choices.size(); ++i) {
    list += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i];
  }
  return list;
}

Status check_choice(const EngineField& field, const std::string& value) {
  const std::vector<std::string> choices = field_choices(field.choices);
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return {};
  return invalid_argument(engine_flag(field) + " '" + value + "' is unknown; use " +
                          one_of(choices));
}

// The one of the row's choices, or of its range, that is nearest; the smaller of two.
int64_t nearest(const EngineField& field, int64_t value) {
  const std::vector<std::string> choices = field_choices(field.choices);
  if (choices.empty()) return std::clamp(value, field.range.low, field.range.high);
  int64_t best = std::stoll(choices.front());
  for (const std::string& choice : choices) {
    const int64_t other = std::stoll(choice);
    if (std::abs(other - value) < std::abs(best - value)) best = other;
  }
  return best;
}

Status check_number_choice(const EngineField& field, int64_t value) {
  const std::vector<std::string> choices = field_choices(field.choices);
  const std::string given = std::to_string(value);
  if (std::find(choices.begin(), choices.end(), given) != choices.end()) return {};
  return invalid_argument(engine_flag(field) + " " + given + " is not supported; use " +
                          one_of(choices));
}

Status out_of_bounds(const EngineField& field, const std::string& value) {
  const FieldRange& range = field.range;
  const std::string low = std::to_string(range.low);
  const bool bounded = range.high < INT_MAX && !field.nearest;
  return invalid_argument(
      engine_flag(field) + " " + value + " is out of range; use " +
      (bounded ? low + " to " + std::to_string(range.high) : "at least " + low));
}

Status check(const EngineField&, bool) { return {}; }
Status check(const EngineField&, uint64_t) { return {}; }
Status check(const EngineField&, const std::vector<int>&) { return {}; }
Status check(const EngineField& field, const std::string& value) {
  return field.form == FieldForm::kChoice ? check_choice(field, value) : Status();
}
Status check(const EngineField& field, int64_t value) {
  if (field.form == FieldForm::kChoice) return check_number_choice(field, value);
  const bool is_auto = field.form == FieldForm::kLength && value == -1;
  const bool is_high = value > field.range.high && !field.nearest;
  if (is_auto || (value >= field.range.low && !is_high)) return {};
  return out_of_bounds(field, std::to_string(value));
}
Status check(const EngineField& field, int value) { return check(field, int64_t{value}); }
// A value that is no number is in no range.
Status check(const EngineField& field, double value) {
  const FieldRange& range = field.range;
  const auto low = static_cast<double>(range.low);
  if (value > low && value <= static_cast<double>(range.high)) return {};
  return invalid_argument(engine_flag(field) + " must lie in (" + std::to_string(range.low) + ", " +
                          std::to_string(range.high) + "]");
}

}  // namespace engine_text

const EngineField* find_engine_field(std::string_view name) {
  const std::span<const EngineField> fields = engine_fields();
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const EngineField& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

std::string engine_flag(const EngineField& field) {
  std::string flag = std::string("--") + field.name;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string engine_field_text(const EngineField& field, const EngineConfig& config) {
  std::string text;
  visit_engine_member(field, config, [&](const auto& value) { text = engine_text::text(value); });
  return text;
}

void copy_engine_field(const EngineField& field, const EngineConfig& from, EngineConfig* to) {
  std::visit(
      [&](auto member) {
        if constexpr (std::is_invocable_v<decltype(member), EngineConfig&>) {
          to->*member = from.*member;
        } else {
          to->parallel.*member = from.parallel.*member;
        }
      },
      field.member);
}

std::vector<std::string> field_choices(const char* choices) {
  std::vector<std::string> words;
  std::istringstream list(choices);
  for (std::string word; std::getline(list, word, '|');) words.push_back(word);
  return words;
}

bool is_automatic(const EngineField& field, const EngineConfig& config) {
  return field.automatic != nullptr &&
         engine_field_text(field, config) == engine_field_text(field, EngineConfig());
}

Status check_engine_field(const EngineField& field, const EngineConfig& config) {
  if (is_automatic(field, config)) return {};
  Status status;
  visit_engine_member(field, config,
                      [&](const auto& value) { status = engine_text::check(field, value); });
  return status;
}

std::vector<std::string> take_nearest(EngineConfig* config) {
  std::vector<std::string> changes;
  for (const EngineField& field : engine_fields()) {
    if (!field.nearest || is_automatic(field, *config)) continue;
    visit_engine_member(field, *config, [&](auto& value) {
      if constexpr (std::is_integral_v<std::decay_t<decltype(value)>>) {
        const auto given = static_cast<int64_t>(value);
        const int64_t used = engine_text::nearest(field, given);
        if (used == given) return;
        changes.push_back(engine_flag(field) + " " + std::to_string(given) + ": " +
                          std::to_string(used) + " is used, the nearest that there is");
        value = static_cast<std::decay_t<decltype(value)>>(used);
      }
    });
  }
  return changes;
}

Status check_engine_fields(const EngineConfig& config) {
  for (const EngineField& field : engine_fields()) {
    FT_RETURN_IF_ERROR(check_engine_field(field, config));
  }
  return {};
}

}  // namespace foretoken
