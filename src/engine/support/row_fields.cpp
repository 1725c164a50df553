#include "engine/support/row_fields.h"

#include <algorithm>

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxRowCount = 1024;

// Each reads a value, or says what it must be; empty: it was read.
std::string read_value(const Json& value, const RowField&, std::string* to) {
  if (!value.is_string()) return "must be a text";
  *to = value.get<std::string>();
  return {};
}

std::string read_value(const Json& value, const RowField&, bool* to) {
  if (!value.is_boolean()) return "must be true or false";
  *to = value.get<bool>();
  return {};
}

std::string read_value(const Json& value, const RowField& field, int* to) {
  const int64_t count = value.is_number_integer() ? value.get<int64_t>() : -1;
  if (count < field.low || count > kMaxRowCount) {
    return "must be a whole number of " + std::to_string(field.low) + " to " +
           std::to_string(kMaxRowCount);
  }
  *to = static_cast<int>(count);
  return {};
}

std::string read_value(const Json& value, const RowField&, std::vector<std::string>* to) {
  const Json list = value.is_array() ? value : Json::array({value});
  const auto is_text = [](const Json& each) { return each.is_string(); };
  if (list.empty() || !std::all_of(list.begin(), list.end(), is_text)) {
    return "must be a text or a list of texts";
  }
  *to = list.get<std::vector<std::string>>();
  return {};
}

std::string fault_of(const Json& value, const RowField& field) {
  return std::visit([&](auto* to) { return read_value(value, field, to); }, field.to);
}

}  // namespace

Status read_row_fields(const Json& entry, const std::string& what,
                       std::span<const RowField> fields) {
  if (!entry.is_object()) {
    return invalid_argument("a " + what + " is a mapping of names to values");
  }
  for (const auto& [name, value] : entry.items()) {
    const std::string_view wanted = name;
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const RowField& each) { return each.name == wanted; });
    const std::string fault = field == fields.end() ? "is unknown" : fault_of(value, *field);
    if (!fault.empty()) return invalid_argument(what + ": '" + name + "' " + fault);
  }
  return {};
}

}  // namespace foretoken
