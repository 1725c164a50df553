#include "model/config/config_fields.h"

#include <cmath>

#include "base/files/python_json.h"

namespace foretoken {
namespace {

constexpr int64_t kMaxCount = 1 << 24;

// Other languages than Python write 4096.0 for 4096.
bool is_whole(const nlohmann::json& value) {
  return value.is_number_integer() ||
         (value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>());
}

bool is_positive(const nlohmann::json& value) {
  return value.is_number() && value.get<double>() > 0 &&
         std::isfinite(static_cast<float>(value.get<double>()));
}

}  // namespace

std::optional<std::vector<int32_t>> read_token_ids(const nlohmann::json& value) {
  std::vector<int32_t> ids;
  for (const nlohmann::json& id : value.is_array() ? value : nlohmann::json::array({value})) {
    if (id.is_null()) continue;
    if (!is_whole(id)) return {};
    const auto number = id.get<double>();
    ids.push_back(number >= 0 && number <= INT32_MAX ? static_cast<int32_t>(number) : -1);
  }
  return ids;
}

const nlohmann::json* ConfigFields::find(const char* name) const {
  const auto it = object_.find(name);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

Status ConfigFields::read_count_or_none(const char* name, int32_t* out) const {
  const nlohmann::json* value = find(name);
  return value == nullptr || *value == 0 ? Status() : read_count(name, out);
}

Status ConfigFields::read_count(const char* name, int32_t* out) const {
  const nlohmann::json* value = find(name);
  if (value == nullptr) return {};
  if (!is_whole(*value) || value->get<double>() < 1 ||
      value->get<double>() > static_cast<double>(kMaxCount)) {
    return wrong(name, "an integer from 1 to 2^24");
  }
  *out = value->get<int32_t>();
  return {};
}

Status ConfigFields::read_positive(const char* name, double* out) const {
  const nlohmann::json* value = find(name);
  if (value == nullptr) return {};
  if (!is_positive(*value)) return wrong(name, "a positive number");
  *out = value->get<double>();
  return {};
}

Status ConfigFields::read_flag(const char* name, bool* out) const {
  const nlohmann::json* value = find(name);
  if (value == nullptr) return {};
  if (!value->is_boolean()) return wrong(name, "true or false");
  *out = value->get<bool>();
  return {};
}

Status ConfigFields::read_positive_list(const char* name, std::vector<double>* out) const {
  const nlohmann::json* value = find(name);
  if (value == nullptr) return {};
  if (!value->is_array()) return wrong(name, "a list of positive numbers");
  out->clear();
  for (const nlohmann::json& element : *value) {
    if (!is_positive(element)) return wrong(name, "a list of positive numbers");
    out->push_back(element.get<double>());
  }
  return {};
}

Status ConfigFields::need_count(const char* name, int32_t* out) const {
  return find(name) == nullptr ? missing(name) : read_count(name, out);
}

Status ConfigFields::need_positive(const char* name, double* out) const {
  return find(name) == nullptr ? missing(name) : read_positive(name, out);
}

Status ConfigFields::missing(const char* name) const {
  if (!takes_overrides_) {
    return invalid_argument(where_ + ": '" + name +
                            "' is missing; add it to the file, or use the files that the drafter "
                            "was published with");
  }
  return invalid_argument(where_ + ": '" + name + "' is missing; give it with --hf-overrides '{\"" +
                          name +
                          "\": ...}', or use the configuration that the model was published "
                          "with");
}

Status ConfigFields::wrong(const char* name, const std::string& wanted) const {
  return invalid_argument(where_ + ": '" + name + "' is " +
                          python_json_text(object_.at(name)).substr(0, 80) + ", but must be " +
                          wanted + "; correct the file");
}

void take_renamed(const ConfigFields& fields, std::span<const RenamedField> names,
                  nlohmann::json* json) {
  for (const auto& [own, common] : names) {
    if (const nlohmann::json* value = fields.find(own)) (*json)[common] = *value;
  }
}

Status take_gpt2_names(const ConfigFields& fields, nlohmann::json* json) {
  constexpr RenamedField kNames[] = {{"n_embd", "hidden_size"},
                                     {"n_layer", "num_hidden_layers"},
                                     {"n_head", "num_attention_heads"},
                                     {"n_inner", "intermediate_size"},
                                     {"n_positions", "max_position_embeddings"},
                                     {"activation_function", "hidden_act"}};
  take_renamed(fields, kNames, json);
  int32_t hidden = 0;
  FT_RETURN_IF_ERROR(fields.need_count("n_embd", &hidden));
  if (fields.find("n_inner") == nullptr) (*json)["intermediate_size"] = 4 * hidden;
  return {};
}

}  // namespace foretoken
