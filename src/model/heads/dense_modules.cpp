#include "model/heads/dense_modules.h"

#include <filesystem>
#include <string>
#include <utility>

#include "model/files/checkpoint.h"
#include "model/files/containers/json_file.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using After = RowLayers::After;

constexpr std::pair<const char*, After> kActivations[] = {{"Identity", After::kNothing},
                                                          {"Tanh", After::kTanh},
                                                          {"ReLU", After::kRelu},
                                                          {"GELU", After::kGelu}};

std::string text_of(const Json& object, const char* name) {
  const Json value = object.is_object() ? object.value(name, Json()) : Json();
  return value.is_string() ? value.get<std::string>() : "";
}

// Of a class by its last name: "torch.nn.modules.activation.Tanh". Tanh where nothing is said.
Result<After> read_activation(const Json& config, const std::string& where) {
  const std::string name = text_of(config, "activation_function");
  if (name.empty()) return After::kTanh;
  for (const auto& [own, after] : kActivations) {
    if (name.substr(name.rfind('.') + 1) == own) return after;
  }
  return unsupported(where + ": activation_function '" + name.substr(0, 80) +
                     "' is not supported; supported: Identity, Tanh, ReLU, GELU");
}

Status add_module(const fs::path& folder, RowLayers* layers) {
  const std::string where = (folder / "config.json").string();
  FT_ASSIGN_OR_RETURN(const Json config, read_json_file(where));
  if (config.is_object() && config.value("use_residual", Json()) == true) {
    return unsupported(where + ": use_residual is not built; use a model without residual modules");
  }
  FT_ASSIGN_OR_RETURN(const After after, read_activation(config, where));
  FT_ASSIGN_OR_RETURN(const Checkpoint files, Checkpoint::open(ModelFiles(folder.string())));
  return layers->add(files, "linear", after);
}

// llama.cpp's names, without activations.
Result<RowLayers> dense_of_gguf(const ModelFiles& model, int32_t hidden_size) {
  RowLayers layers;
  FT_ASSIGN_OR_RETURN(const auto file, model.gguf());
  if (!file->tensors().contains("dense_2.weight")) return layers;
  FT_ASSIGN_OR_RETURN(const Checkpoint files, Checkpoint::open(model));
  for (const char* name : {"dense_2", "dense_3"}) {
    if (!files.find(std::string(name) + ".weight").ok()) continue;
    FT_RETURN_IF_ERROR(layers.add(files, name, After::kNothing));
  }
  if (layers.empty() || layers.inputs() == hidden_size) return layers;
  return invalid_argument(model.text() + ": dense_2.weight reads states of " +
                          std::to_string(layers.inputs()) + " numbers, the model makes " +
                          std::to_string(hidden_size) + "; convert the model again");
}

}  // namespace

Result<RowLayers> load_dense_modules(const ModelFiles& model, int32_t hidden_size) {
  RowLayers layers;
  if (model.is_gguf()) return dense_of_gguf(model, hidden_size);
  const fs::path folder = model.path(), list = folder / "modules.json";
  std::error_code ignored;
  if (!fs::exists(list, ignored)) return layers;
  FT_ASSIGN_OR_RETURN(const Json modules, read_json_list(list.string()));
  bool is_pooled = false;
  for (const Json& module : modules) {
    const std::string type = text_of(module, "type");
    is_pooled = is_pooled || type.ends_with(".Pooling");
    if (!type.ends_with(".Dense")) continue;
    if (!is_pooled) {
      return unsupported(list.string() +
                         ": a module Dense before Pooling is not supported; use a model whose "
                         "states are pooled first");
    }
    const fs::path own = folder / text_of(module, "path");
    FT_RETURN_IF_ERROR(add_module(own, &layers));
    if (layers.inputs() != hidden_size) {
      return invalid_argument(own.string() + ": its matrix reads states of " +
                              std::to_string(layers.inputs()) + " numbers, the model makes " +
                              std::to_string(hidden_size) + "; fetch the folder again");
    }
  }
  return layers;
}

Result<RowLayers> load_token_modules(const ModelFiles& model) {
  RowLayers layers;
  const fs::path folder = model.path(), list = folder / "modules.json";
  std::error_code ignored;
  if (model.is_gguf() || !fs::exists(list, ignored)) return layers;
  FT_ASSIGN_OR_RETURN(const Json modules, read_json_list(list.string()));
  for (const Json& module : modules) {
    if (text_of(module, "type").ends_with(".Pooling")) return layers;
  }
  for (const Json& module : modules) {
    if (!text_of(module, "type").ends_with(".Dense")) continue;
    FT_RETURN_IF_ERROR(add_module(folder / text_of(module, "path"), &layers));
  }
  return layers;
}

}  // namespace foretoken
