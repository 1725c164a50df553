#pragma once
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

// auto, safetensors, dummy, or dummy-RECIPE with a quantising recipe of `foretoken convert --type`.
// InvalidArgument otherwise.
Result<LoadChoice> choose_load_format(const std::string& name);

// Whether no weights are read.
inline bool is_dummy(const std::string& load_format) { return load_format.starts_with("dummy"); }

}  // namespace foretoken
