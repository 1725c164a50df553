#include "engine/start/load_format.h"

#include <algorithm>

#include "base/log.h"
#include "compat/compat.h"
#include "gguf/container/gguf_file.h"

namespace foretoken {
namespace {

constexpr std::string_view kDummy = "dummy-";

// Of vLLM: other ways to read the same files.
constexpr std::string_view kReadersOfVllm[] = {
    "pt", "npcache", "hf", "fastsafetensors", "instanttensor", "runai_streamer", "modelexpress"};

bool quantises(const GgufRecipe& recipe) { return recipe.matrices.find('Q') < 2; }

// Whether a model can have its files in the named format.
Status check_files(const std::string& name, const std::string& model) {
  if (is_gguf(model) == (name == "gguf")) return {};
  if (is_gguf(model)) {
    return invalid_argument("--load-format safetensors does not read '" + model +
                            "', a GGUF file; use auto or gguf");
  }
  return invalid_argument("--load-format gguf reads a file *.gguf, which --model '" + model +
                          "' is not; name one, or use --load-format auto");
}

}  // namespace

Result<LoadChoice> choose_load_format(const std::string& name, const std::string& model) {
  if (name == "auto") return LoadChoice{};
  if (std::ranges::count(kReadersOfVllm, name) > 0) {
    FT_LOG(warn, "--load-format {} has no effect: files are found and read as with auto", name);
    return LoadChoice{};
  }
  if (name == "safetensors" || name == "gguf") {
    FT_RETURN_IF_ERROR(check_files(name, model));
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

Result<WeightRounding> choose_rounding(const EngineConfig& config, const ModelFiles& model) {
  FT_ASSIGN_OR_RETURN(const WeightRounding rounding,
                      choose_quantization(config.quantization, model));
  const bool has_form = !is_dummy(config.load_format) || config.load_format == "dummy";
  if (rounding == WeightRounding::kNone || has_form) return rounding;
  FT_RETURN_IF_ERROR(
      compat({.quantization = config.quantization, .quantised_format = config.load_format}));
  return rounding;
}

}  // namespace foretoken
