#include "engine/start/load_format.h"

#include <algorithm>

#include "compat/compat.h"
#include "gguf/container/gguf_file.h"

namespace foretoken {
namespace {

constexpr std::string_view kDummy = "dummy-";

// Of vLLM: other ways to read the same files.
constexpr std::string_view kReadersOfVllm[] = {"pt",
                                               "npcache",
                                               "hf",
                                               "mistral",
                                               "bitsandbytes",
                                               "fastsafetensors",
                                               "instanttensor",
                                               "runai_streamer",
                                               "modelexpress"};

bool quantises(const GgufRecipe& recipe) { return recipe.matrices.find('Q') < 2; }

}  // namespace

bool is_reader_of_vllm(const std::string& name) {
  return std::ranges::count(kReadersOfVllm, name) > 0;
}

Result<LoadChoice> choose_load_format(const std::string& name, const std::string& model) {
  if (name == "auto") return LoadChoice{};
  if (is_reader_of_vllm(name)) return LoadChoice{};
  if (name == "safetensors" || name == "gguf") {
    FT_RETURN_IF_ERROR(compat({.files = model, .load_format = name, .gguf = is_gguf(model)}));
    return LoadChoice{};
  }
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
  return invalid_argument(
      "--load-format '" + name +
      "' is unknown; use auto, safetensors, gguf, dummy, or with quantised random "
      "weights one of " +
      quantised);
}

}  // namespace foretoken
