#include "engine/load_format.h"

namespace foretoken {
namespace {

constexpr std::string_view kDummy = "dummy-";

bool quantises(const GgufRecipe& recipe) { return recipe.matrices.starts_with("Q"); }

}  // namespace

Result<LoadChoice> choose_load_format(const std::string& name) {
  if (name == "auto" || name == "safetensors") return LoadChoice{};
  if (name == "dummy") return LoadChoice{LoadFormat::kDummy};
  if (name.starts_with(kDummy)) {
    const GgufRecipe* recipe = find_gguf_recipe(std::string_view(name).substr(kDummy.size()));
    if (recipe != nullptr && quantises(*recipe)) return LoadChoice{LoadFormat::kDummy, recipe};
  }
  std::string quantised;
  for (const GgufRecipe& recipe : gguf_recipes()) {
    if (!quantises(recipe)) continue;
    quantised += (quantised.empty() ? "" : ", ") + std::string(kDummy) + std::string(recipe.name);
  }
  return invalid_argument("--load-format '" + name +
                          "' is unknown; use auto, safetensors, dummy, or with quantised random "
                          "weights one of " +
                          quantised);
}

}  // namespace foretoken
