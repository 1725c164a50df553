#include "serve/fields/sampling_schema.h"

#include <climits>
#include <cmath>
#include <type_traits>

#include "config/sampling_fields.h"

namespace foretoken {
namespace sampling_schemas {

using json = nlohmann::ordered_json;

constexpr const char* kIds = R"({"type":"array","items":{"$ref":"#/components/schemas/TokenId"}})";
constexpr const char* kSomeIds =
    R"({"type":"array","minItems":1,"items":{"$ref":"#/components/schemas/TokenId"}})";
constexpr const char* kNumLogprobs = R"({"$ref":"#/components/schemas/NumLogprobs"})";
// OpenAI's object and llama.cpp's list.
constexpr const char* kBiases =
    R"({"anyOf":[{"type":"object","maxProperties":1024,
        "propertyNames":{"pattern":"^(0|[1-9][0-9]{0,8})$"},
        "additionalProperties":{"type":"number"}},
        {"type":"array","items":{"type":"array","minItems":2,"maxItems":2,
         "prefixItems":[
           {"anyOf":[{"$ref":"#/components/schemas/TokenId"},
             {"type":"string","description":"Means each of its tokens."}]},
           {"anyOf":[{"type":"number"},{"const":false}]}]},
         "description":"false forbids the token"}]})";

json number(double value) {
  if (value == std::floor(value)) return static_cast<int64_t>(value);
  return value;
}

template <class T>
json number_schema(const SamplingRange& range) {
  json schema = {{"type", std::is_integral_v<T> ? "integer" : "number"}};
  schema[range.above_low ? "exclusiveMinimum" : "minimum"] = number(range.low);
  // Of larger integers the largest of 32 bits is taken.
  if (!std::is_integral_v<T> || range.high != INT_MAX) schema["maximum"] = number(range.high);
  return schema;
}

json schema_of(const SamplingField&, bool) { return {{"type", "boolean"}}; }
json schema_of(const SamplingField& field, int) { return number_schema<int>(field.range); }
json schema_of(const SamplingField& field, float) { return number_schema<float>(field.range); }
json schema_of(const SamplingField&, const std::optional<int>&) {
  return json::parse(kNumLogprobs);
}
json schema_of(const SamplingField&, const std::optional<uint64_t>&) {
  return json::parse(kSeedSchema);
}
json schema_of(const SamplingField&, const std::vector<std::string>&) {
  return json::parse(kTextsSchema);
}
json schema_of(const SamplingField&, const std::vector<int32_t>&) { return json::parse(kIds); }
json schema_of(const SamplingField&, const std::optional<std::vector<int32_t>>&) {
  return json::parse(kSomeIds);
}
json schema_of(const SamplingField& field, const std::vector<std::pair<int32_t, float>>&) {
  json schema = json::parse(kBiases);
  schema["anyOf"][0]["additionalProperties"]["description"] =
      "Cut to " + range_text(field.range) + ".";
  return schema;
}

}  // namespace sampling_schemas

nlohmann::ordered_json sampling_schema(const SamplingField& field) {
  if (field.schema != nullptr) return nlohmann::ordered_json::parse(field.schema);
  nlohmann::ordered_json schema;
  visit_sampling_member(field, SamplingParams(), [&](const auto& value) {
    schema = sampling_schemas::schema_of(field, value);
  });
  if (field.note != nullptr) schema["description"] = field.note;
  return schema;
}

nlohmann::ordered_json clamped_schema(const SamplingField& field) {
  nlohmann::ordered_json schema = sampling_schema(field);
  std::string text = "Below " + schema["minimum"].dump() + " as " + schema["minimum"].dump();
  schema.erase("minimum");
  if (field.range.high != INT_MAX) {
    text += ", above " + schema["maximum"].dump() + " as " + schema["maximum"].dump();
    schema.erase("maximum");
  }
  schema["description"] = text + ".";
  return schema;
}

}  // namespace foretoken
