#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace foretoken {

// The name in `architectures` that transformers gives to causal models of a `model_type`; null for
// one that it does not know. Not all of them are supported.
const char* architecture_of_model_type(std::string_view model_type);

// As known_architectures_hint, of a `model_type`.
std::string known_model_types_hint(const std::string& model_type);

// What the class `name` of a config.json is called here: as the table of architectures has it,
// where it has one that computes the same. file: an object.
std::string own_class_name(std::string name, const nlohmann::json& file);

}  // namespace foretoken
