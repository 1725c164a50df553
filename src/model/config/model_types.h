#pragma once
#include <string>
#include <string_view>

namespace foretoken {

// The name in `architectures` that transformers gives to causal models of a `model_type`; null for
// one that it does not know. Not all of them are supported.
const char* architecture_of_model_type(std::string_view model_type);

// As known_architectures_hint, of a `model_type`.
std::string known_model_types_hint(const std::string& model_type);

}  // namespace foretoken
