#include "model/config/config_overrides.h"

#include <string>

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr const char* kText = "text_config";
constexpr const char* kParameters = "rope_parameters";
constexpr const char* kScaling = "rope_scaling";
constexpr const char* kOfFull = "full_attention";
// Of rope_parameters, but no part of how positions are scaled.
constexpr const char* kPlainOfRope[] = {"rope_theta", "partial_rotary_factor"};

const Json* find_object(const Json& fields, const char* name) {
  const auto found = fields.find(name);
  return found == fields.end() || !found->is_object() || found->empty() ? nullptr : &*found;
}

void lay_over(const std::string& name, const Json& value, Json* fields) {
  Json patch;
  patch[name] = value;
  fields->update(patch, true);
}

// What positions of layers of a type are turned by, without scaling.
Json without_scaling(const Json& parameters) {
  Json plain = {{"rope_type", "default"}};
  for (const char* name : kPlainOfRope) {
    if (parameters.contains(name)) plain[name] = parameters[name];
  }
  return plain;
}

void settle_rope(const Json& overrides, Json* fields) {
  const Json* own = find_object(overrides, kParameters);
  if (own != nullptr && !overrides.contains(kScaling)) fields->erase(kScaling);
  if (find_object(*fields, kParameters) == nullptr) return;
  Json& parameters = (*fields)[kParameters];
  const bool has_types = find_object(parameters, kOfFull) != nullptr;
  for (const char* name : kPlainOfRope) {
    const bool is_meant = overrides.contains(name) && (own == nullptr || !own->contains(name));
    if (is_meant) (has_types ? parameters[kOfFull] : parameters)[name] = overrides[name];
  }
  const bool ends_scaling =
      own == nullptr && overrides.contains(kScaling) && overrides[kScaling].is_null();
  if (!ends_scaling) return;
  if (!has_types) {
    parameters = without_scaling(parameters);
    return;
  }
  for (Json& of_type : parameters) {
    if (of_type.is_object()) of_type = without_scaling(of_type);
  }
}

}  // namespace

Json with_overrides(const Json& file, const Json& overrides) {
  Json json = file;
  json.update(overrides, true);
  settle_rope(overrides, &json);
  const auto text = json.find(kText);
  if (text == json.end() || !text->is_object()) return json;
  const Json* own = find_object(overrides, kText);
  Json meant = own != nullptr ? *own : Json::object();
  for (const auto& [name, value] : overrides.items()) {
    const bool is_of_file = name == kText || name == "architectures" || name == "model_type";
    if (is_of_file || meant.contains(name)) continue;
    if (!text->contains(name) && file.contains(name)) continue;
    lay_over(name, value, &*text);
    meant[name] = value;
  }
  settle_rope(meant, &*text);
  return json;
}

}  // namespace foretoken
