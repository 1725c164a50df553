#include "convert/model_tensors.h"

#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "model/files/forms/convert.h"
#include "model/files/forms/scaled_names.h"
#include "model/layer/layer_tensors.h"

namespace foretoken {
namespace {

class Tensors {
 public:
  Tensors(const ModelConfig& config, const DecoderTraits& traits)
      : config_(config), traits_(traits) {}

  std::vector<ModelTensor> all() {
    add("model.embed_tokens.weight", {config_.vocab_size, config_.hidden_size});
    all_.back().is_output = config_.tie_word_embeddings;
    for (int32_t i = 0; i < config_.num_layers; ++i) add_layer(i);
    if (traits_.norms.weighted) add("model.norm.weight", {config_.hidden_size});
    if (traits_.norms.bias) add("model.norm.bias", {config_.hidden_size});
    if (!config_.tie_word_embeddings) {
      add("lm_head.weight", {config_.vocab_size, config_.hidden_size});
      all_.back().is_output = true;
    }
    return std::move(all_);
  }

 private:
  void add(std::string name, std::vector<int64_t> shape) {
    all_.push_back({std::move(name), std::move(shape), layer_, false, 0});
  }
  void add_layer(int32_t index) {
    layer_ = index;
    const std::string prefix = "model.layers." + std::to_string(index / traits_.layers_each) + ".";
    const LayerSpec layer = traits_.layer(config_, config_.layers.at(static_cast<size_t>(index)));
    for (const LayerTensor& tensor : layer_tensors(layer, traits_.norms, config_.hidden_size)) {
      std::vector<int64_t> shape = {tensor.rows};
      if (tensor.stacked > 0) shape = {tensor.stacked, tensor.rows / tensor.stacked};
      if (tensor.cols > 0) shape.push_back(tensor.cols);
      add(prefix + tensor.name, std::move(shape));
      all_.back().turned_head_dim = tensor.turned_rows;
      all_.back().is_exact = tensor.is_exact;
    }
    layer_ = -1;
  }

  const ModelConfig& config_;
  const DecoderTraits& traits_;
  std::vector<ModelTensor> all_;
  int32_t layer_ = -1;
};

// What some checkpoints hold beside the weights: frequencies that follow from config.json, the tied
// output matrix once more, and scales of an FP8 KV cache, for which no format has a place.
bool may_stay_behind(const std::string& name) {
  return is_attention_scale(name) || name.ends_with(".rotary_emb.inv_freq") ||
         name == "lm_head.weight";
}

constexpr std::array<std::string_view, 2> kModuleNames = {"model.mtp", "mtp."};

}  // namespace

std::vector<ModelTensor> model_tensors(const ModelConfig& config, const DecoderTraits& traits) {
  return Tensors(config, traits).all();
}

ModuleTensors module_tensors(const ModelConfig& config, const Checkpoint& checkpoint) {
  ModuleTensors modules;
  const auto take = [&](std::string_view beginning, const std::string& pattern) {
    const size_t before = modules.tensors.size();
    for (const auto& [name, view] : checkpoint.tensors()) {
      if (name.starts_with(beginning)) modules.tensors.push_back({name, view->shape});
    }
    if (modules.tensors.size() > before) modules.ignored.push_back(pattern);
  };
  for (const std::string_view name : kModuleNames) take(name, "re:.*mtp.*");
  for (int32_t i = 0; i < config.num_mtp_modules; ++i) {
    const std::string number = std::to_string(config.num_layers + i);
    take("model.layers." + number + ".", "re:.*layers\\." + number + "\\..*");
  }
  return modules;
}

Result<std::vector<const TensorView*>> find_tensors(const Checkpoint& checkpoint,
                                                    const std::vector<ModelTensor>& tensors) {
  std::vector<const TensorView*> views;
  std::set<std::string> known;
  for (const ModelTensor& tensor : tensors) {
    FT_ASSIGN_OR_RETURN(const TensorView* view, checkpoint.find(tensor.name));
    if (view->shape != tensor.shape) {
      TensorView wanted;
      wanted.shape = tensor.shape;
      return invalid_argument(view->file + ": tensor '" + view->name + "' has shape " +
                              view->shape_text() + ", but " + checkpoint.config_name() +
                              " asks for " + wanted.shape_text() +
                              "; the weights and config.json must be of the same model");
    }
    FT_RETURN_IF_ERROR(check_convertible(*view));
    views.push_back(view);
    known.insert(tensor.name);
  }
  for (const auto& [name, view] : checkpoint.tensors()) {
    if (known.contains(name) || may_stay_behind(name)) continue;
    return unsupported(view->file + ": tensor '" + view->name + "' is no part of the model that " +
                       checkpoint.config_name() + " describes; it would be lost");
  }
  return views;
}

}  // namespace foretoken
