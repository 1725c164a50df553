#include "model/heads/token_head.h"

#include <cmath>
#include <filesystem>
#include <string>

#include "gguf/model_texts.h"
#include "model/files/checkpoint.h"
#include "model/files/containers/json_file.h"
#include "model/heads/dense_modules.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;
using After = RowLayers::After;

std::string first_class(const Json& config) {
  const Json names = config.value("architectures", Json());
  const bool is_named = names.is_array() && !names.empty() && names[0].is_string();
  return is_named ? names[0].get<std::string>() : "";
}

Result<RowLayers> load_labels(const ModelFiles& model, const Json& config) {
  RowLayers layers;
  FT_ASSIGN_OR_RETURN(const Checkpoint files, Checkpoint::open(model));
  // ModernBERT's.
  if (files.find("head.dense.weight").ok()) {
    FT_RETURN_IF_ERROR(layers.add(files, "head.dense", After::kGelu));
    const Json eps = config.value("norm_eps", Json());
    FT_RETURN_IF_ERROR(
        layers.add_norm(files, "head.norm", eps.is_number() ? eps.get<float>() : 1e-5F));
  }
  FT_RETURN_IF_ERROR(layers.add(files, "classifier", After::kNothing));
  return layers;
}

Result<RowLayers> load_vectors(const ModelFiles& model) {
  RowLayers layers;
  FT_ASSIGN_OR_RETURN(const Checkpoint files, Checkpoint::open(model));
  FT_RETURN_IF_ERROR(layers.add(files, "linear", After::kNothing));
  return layers;
}

void make_unit(std::span<float> row) {
  double sum = 0;
  for (const float x : row) sum += double{x} * double{x};
  const double length = std::sqrt(sum);
  for (float& x : row) x = length > 0 ? static_cast<float>(double{x} / length) : x;
}

}  // namespace

Result<std::optional<TokenHead>> TokenHead::load(const ModelFiles& model, int32_t hidden_size) {
  if (model.is_gguf() || !has_model_text(model, "config.json")) return std::optional<TokenHead>();
  FT_ASSIGN_OR_RETURN(const Json config, read_config_json(model));
  const std::string name = first_class(config);
  const bool gives_labels = name.ends_with("ForTokenClassification");
  RowLayers layers;
  if (gives_labels) {
    FT_ASSIGN_OR_RETURN(layers, load_labels(model, config));
  } else {
    FT_ASSIGN_OR_RETURN(layers, load_token_modules(model));
    if (layers.empty() && name.find("ColBERT") != std::string::npos) {
      FT_ASSIGN_OR_RETURN(layers, load_vectors(model));
    }
  }
  if (layers.empty()) return std::optional<TokenHead>();
  if (layers.inputs() != hidden_size) {
    return invalid_argument(model.text() + ": what becomes of a token's state is made of " +
                            std::to_string(layers.inputs()) + " numbers, the model makes " +
                            std::to_string(hidden_size) + "; fetch the folder again");
  }
  return std::optional(TokenHead(std::move(layers), gives_labels));
}

std::vector<float> TokenHead::run(std::span<const float> states, bool normalize) const {
  const auto inputs = static_cast<size_t>(layers_.inputs());
  std::vector<float> all;
  for (size_t at = 0; at + inputs <= states.size(); at += inputs) {
    std::vector<float> row = layers_.run(states.subspan(at, inputs));
    if (normalize && !gives_labels_) make_unit(row);
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

}  // namespace foretoken
