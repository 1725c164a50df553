#pragma once
#include <string_view>

namespace foretoken {

// The name in `architectures` that transformers gives to causal models of a `model_type`; null for
// one that it does not know. Not all of them are supported.
const char* architecture_of_model_type(std::string_view model_type);

}  // namespace foretoken
