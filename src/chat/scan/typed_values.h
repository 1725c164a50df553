#pragma once
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace foretoken {

// Values of calls that models write as plain text, made JSON by what the parameters' schemas say.

// The schema that `schema`, a part of `root`, leads to by references within `root` and by an
// "allOf" of one; as it is where it leads nowhere.
nlohmann::ordered_json followed_schema(nlohmann::ordered_json schema,
                                       const nlohmann::ordered_json& root);

// The names of the types that a schema allows; none: any.
std::set<std::string> allowed_types(const nlohmann::ordered_json& schema);
// Whether a value is always a text: so is one of which the schema says nothing.
bool is_text_only(const nlohmann::ordered_json& schema);

// The text of a parameter as JSON, by what its schema allows (null: text).
std::string typed_value(const std::string& text, const nlohmann::ordered_json& schema);

// A piece of a text as it stands within a JSON string.
std::string json_string_part(const std::string& text);

}  // namespace foretoken
