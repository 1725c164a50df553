#include "serve/fields/json_fields.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "base/text/nearest_name.h"
#include "serve/fields/lax_values.h"
#include "serve/fields/request_warnings.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// A whole number, or the nearest one of 32 bits: clients say "no limit" with the largest integer
// of their own.
std::optional<int32_t> nearest_int32(const json& value) {
  const std::optional<json> whole = lax_integer(value);
  if (!whole) return std::nullopt;
  if (whole->is_number_unsigned()) {
    return static_cast<int32_t>(std::min<uint64_t>(whole->get<uint64_t>(), INT32_MAX));
  }
  return static_cast<int32_t>(std::clamp<int64_t>(whole->get<int64_t>(), INT32_MIN, INT32_MAX));
}

std::optional<int32_t> exact_int32(const json& value) {
  const std::optional<int32_t> nearest = nearest_int32(value);
  return nearest && *lax_integer(value) == *nearest ? nearest : std::nullopt;
}

}  // namespace

Status FieldNotes::tell(const std::string& sentence) const {
  if (warnings == nullptr) return invalid_argument(sentence);
  add_warning(sentence, warnings);
  return {};
}

std::optional<uint64_t> JsonFields::count_of(const json& value) {
  const std::optional<json> whole = lax_integer(value);
  const bool counts = whole && (whole->is_number_unsigned() || whole->get<int64_t>() >= 0);
  return counts ? std::optional(whole->get<uint64_t>()) : std::nullopt;
}

bool JsonFields::is_count(const json& value) { return value.is_number() && count_of(value); }

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
  const std::optional<bool> flag = lax_flag(*field);
  if (!flag) return wrong_type(name, "true or false", *field);
  *value = *flag;
}

void JsonFields::read(const char* name, int* value) {
  const json* field = take(name);
  if (field == nullptr) return;
  const std::optional<int32_t> number = nearest_int32(*field);
  if (!number) return wrong_type(name, "an integer", *field);
  *value = *number;
}

void JsonFields::read(const char* name, uint64_t* value) {
  const json* field = take(name);
  if (field == nullptr) return;
  const std::optional<uint64_t> number = count_of(*field);
  if (!number) return wrong_type(name, "an integer from 0 up", *field);
  *value = *number;
}

void JsonFields::read(const char* name, float* value) {
  const json* field = take(name);
  if (field == nullptr) return;
  const std::optional<double> exact = lax_number(*field);
  if (!exact) return wrong_type(name, "a number", *field);
  *value = static_cast<float>(*exact);
  // What is above 0 stays so.
  if (*value == 0 && *exact != 0) *value = std::copysign(FLT_MIN, static_cast<float>(*exact));
}

void JsonFields::read(const char* name, double* value) {
  const json* field = take(name);
  if (field == nullptr) return;
  const std::optional<double> number = lax_number(*field);
  if (!number) return wrong_type(name, "a number", *field);
  *value = *number;
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
    const std::optional<int32_t> number = exact_int32(item);
    if (!number) return wrong_type(name, "an array of whole numbers", item);
    value->push_back(*number);
  }
}

void JsonFields::read(const char* name, std::vector<double>* value) {
  const json* field = take(name);
  if (field == nullptr) return;
  if (!field->is_array()) return wrong_type(name, "an array of numbers", *field);
  value->clear();
  for (const json& item : *field) {
    const std::optional<double> number = lax_number(item);
    if (!number) return wrong_type(name, "an array of numbers", item);
    value->push_back(*number);
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

void JsonFields::refuse(std::initializer_list<Refused> fields) {
  for (const Refused& field : fields) {
    read_.insert(field.name);
    if (asks_for_something(field.name)) {
      fail("'" + std::string(field.name) + "' is not supported; " + field.instead);
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

void JsonFields::pass_over_vllms() {
  pass_over({"kv_transfer_params", "ec_transfer_params", "vllm_xargs", "mm_payload",
             "mm_processor_kwargs", "media_io_kwargs", "return_mm_kwargs", "watermarking"});
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
