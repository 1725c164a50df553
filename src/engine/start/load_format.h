#pragma once
#include <foretoken/config.h>

#include <string>

#include "base/result.h"
#include "gguf/gguf_recipe.h"
#include "model/registry.h"

namespace foretoken {

// What --load-format means.
struct LoadChoice {
  LoadFormat format = LoadFormat::kAuto;
  const GgufRecipe* recipe = nullptr;  // by which random weights are quantised; null: they are not
};

// auto, safetensors, gguf, dummy, or dummy-RECIPE with a quantising recipe of `foretoken convert
// --type`. InvalidArgument otherwise, and where the model (a path or a Hub id) has other files.
Result<LoadChoice> choose_load_format(const std::string& name, const std::string& model);

// vLLM's names of other ways to read the same files, which are as auto.
bool is_reader_of_vllm(const std::string& name);

// Whether rows are rounded for products with FP8 matrices.
inline bool rounds_activations(const EngineConfig& config) {
  return config.activation_scheme != "none";
}

// Whether no weights are read.
inline bool is_dummy(const std::string& load_format) { return load_format.starts_with("dummy"); }

}  // namespace foretoken
