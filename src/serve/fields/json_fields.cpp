#include "serve/fields/json_fields.h"

#include <cfloat>
#include <cmath>

#include "serve/fields/field_names.h"
#include "serve/fields/request_warnings.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// 3.0 is an integer, too, for JSON Schema and for vLLM.
bool is_whole(const json& value) {
  if (!value.is_number_float()) return value.is_number_integer();
  const auto number = value.get<double>();
  return std::trunc(number) == number && std::abs(number) < 9.2e18;
}

bool is_int32(const json& value) {
  if (!is_whole(value)) return false;
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    return number >= INT32_MIN && number <= INT32_MAX;
  }
  if (value.is_number_unsigned()) return value.get<uint64_t>() <= INT32_MAX;
  return value.get<int64_t>() >= INT32_MIN;
}

}  // namespace

Status FieldNotes::tell(const std::string& sentence) const {
  if (warnings == nullptr) return invalid_argument(sentence);
  add_warning(sentence, warnings);
  return {};
}

bool JsonFields::is_count(const json& value) {
  return value.is_number_unsigned() || (is_whole(value) && value.get<double>() >= 0);
}

JsonFields::JsonFields(const json& object, std::string what, FieldNotes notes)
    : object_(object), what_(std::move(what)), notes_(notes) {}

const json* JsonFields::find(const char* name) const {
  const auto stands = stand_ins_.find(name);
  if (stands != stand_ins_.end()) return stands->is_null() ? nullptr : &*stands;
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool JsonFields::has(const char* name) const { return find(name) != nullptr; }

const json* JsonFields::raw(const char* name) { return take(name); }

const json* JsonFields::take(const char* name) {
  read_.insert(name);
  return find(name);
}

void JsonFields::read(const char* name, bool* value) {
  const json* field = take(name);
  if (field == nullptr) return;
  if (!field->is_boolean()) return wrong_type(name, "true or false", *field);
  *value = field->get<bool>();
}

void JsonFields::read(const char* name, int* value) {
  const json* field = take(name);
  if (field == nullptr) return;
  if (!is_int32(*field)) return wrong_type(name, "an integer of 32 bits", *field);
  *value = field->get<int>();
}

void JsonFields::read(const char* name, uint64_t* value) {
  const json* field = take(name);
  if (field == nullptr) return;
  if (!is_count(*field)) return wrong_type(name, "an integer from 0 up", *field);
  *value = field->get<uint64_t>();
}

void JsonFields::read(const char* name, float* value) {
  const json* field = take(name);
  if (field == nullptr) return;
  if (!field->is_number()) return wrong_type(name, "a number", *field);
  const auto exact = field->get<double>();
  *value = static_cast<float>(exact);
  // What is above 0 stays so.
  if (*value == 0 && exact != 0) *value = std::copysign(FLT_MIN, static_cast<float>(exact));
}

void JsonFields::read(const char* name, double* value) {
  const json* field = take(name);
  if (field == nullptr) return;
  if (!field->is_number()) return wrong_type(name, "a number", *field);
  *value = field->get<double>();
}

void JsonFields::read(const char* name, std::string* value) {
  const json* field = take(name);
  if (field == nullptr) return;
  if (!field->is_string()) return wrong_type(name, "a string", *field);
  *value = field->get<std::string>();
}

void JsonFields::read(const char* name, std::vector<int32_t>* value) {
  const json* field = take(name);
  if (field == nullptr) return;
  if (!field->is_array()) return wrong_type(name, "an array of whole numbers", *field);
  value->clear();
  for (const json& item : *field) {
    if (!is_int32(item)) return wrong_type(name, "an array of whole numbers", item);
    value->push_back(item.get<int32_t>());
  }
}

void JsonFields::read(const char* name, std::vector<double>* value) {
  const json* field = take(name);
  if (field == nullptr) return;
  if (!field->is_array()) return wrong_type(name, "an array of numbers", *field);
  value->clear();
  for (const json& item : *field) {
    if (!item.is_number()) return wrong_type(name, "an array of numbers", item);
    value->push_back(item.get<double>());
  }
}

void JsonFields::read(const char* name, std::vector<std::string>* value) {
  const json* field = take(name);
  if (field == nullptr) return;
  value->clear();
  if (field->is_string()) return value->push_back(field->get<std::string>());
  if (!field->is_array()) return wrong_type(name, "a string or an array of strings", *field);
  for (const json& item : *field) {
    if (!item.is_string()) return wrong_type(name, "a string or an array of strings", item);
    value->push_back(item.get<std::string>());
  }
}

void JsonFields::fail(const std::string& message) {
  if (status_.ok()) status_ = invalid_argument((what_.empty() ? "" : what_ + ": ") + message);
}

void JsonFields::wrong_type(const char* name, const char* wanted, const json& got) {
  std::string shown = got.dump(-1, ' ', false, json::error_handler_t::replace);
  if (shown.size() > 40) shown = shown.substr(0, 40) + "...";
  fail("'" + std::string(name) + "' must be " + wanted + ", not " + shown);
}

void JsonFields::ignore(std::initializer_list<const char*> names) {
  for (const char* name : names) read_.insert(name);
}

void JsonFields::refuse_later(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    read_.insert(name);
    if (asks_for_something(name)) {
      fail("'" + std::string(name) + "' is not supported yet; remove it");
    }
  }
}

void JsonFields::pass_over(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    read_.insert(name);
    if (asks_for_something(name)) {
      warn("'" + std::string(name) + "' has no effect here and was passed over");
    }
  }
}

bool JsonFields::asks_for_something(const char* name) const {
  const json* value = find(name);
  return value != nullptr && *value != false && *value != "" && !value->empty();
}

std::string JsonFields::unknown(const std::string& name, const char* otherwise) const {
  const std::vector<std::string> known(read_.begin(), read_.end());
  return "'" + shown_name(name) + "' is unknown" + nearest_name_hint(name, known, otherwise);
}

void JsonFields::refuse_unread() {
  const std::optional<std::string> name = first_unread();
  if (name) fail(unknown(*name, "; remove it"));
}

void JsonFields::check_unread() {
  if (notes_.warnings == nullptr) return refuse_unread();
  for (const auto& [name, value] : object_.items()) {
    if (read_.count(name) == 0 && !value.is_null()) warn(unknown(name, " and was passed over"));
  }
}

void JsonFields::warn(const std::string& sentence) {
  if (notes_.warnings == nullptr) return fail(sentence);
  add_warning((what_.empty() ? "" : what_ + ": ") + sentence, notes_.warnings);
}

std::optional<std::string> JsonFields::first_unread() const {
  for (const auto& [name, value] : object_.items()) {
    if (read_.count(name) == 0) return name;
  }
  return std::nullopt;
}

}  // namespace foretoken
