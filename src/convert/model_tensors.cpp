#include "convert/model_tensors.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

#include "model/files/forms/convert.h"
#include "model/files/forms/scaled_names.h"
#include "model/layer/layer_tensors.h"
#include "model/weights/tensor_places.h"

namespace foretoken {
namespace {

class Tensors {
 public:
  Tensors(const ModelConfig& config, const DecoderTraits& traits, const DecoderTraits::Place& place)
      : config_(config), traits_(traits), place_(place) {}

  std::vector<ModelTensor> all() {
    const int32_t rows = config_.embedding_rows > 0 ? config_.embedding_rows : config_.vocab_size;
    add(embedding_name(traits_, place_), {rows, config_.embedding_width()});
    all_.back().is_output = config_.tie_word_embeddings;
    for (int32_t i = 0; i < config_.num_stored_layers(); ++i) add_layer(i);
    if (config_.last_norm) add_last_norm();
    if (!config_.tie_word_embeddings) {
      add(place_.head, {config_.vocab_size, config_.embedding_width()});
      all_.back().is_output = true;
    }
    return std::move(all_);
  }

 private:
  void add(std::string name, std::vector<int64_t> shape) {
    all_.push_back({std::move(name), std::move(shape), layer_, false, 0});
  }
  void add_last_norm() {
    const NormForm form = traits_.last_norm_form.value_or(traits_.norms);
    const std::string name = std::string(place_.body) + traits_.last_norm;
    if (form.weighted) add(name + ".weight", {config_.hidden_size});
    if (form.bias) add(name + ".bias", {config_.hidden_size});
  }
  void add_layer(int32_t index) {
    layer_ = index;
    const std::string prefix = std::string(place_.body) + traits_.layers +
                               std::to_string(index / traits_.layers_each) + ".";
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
  const DecoderTraits::Place place_;
  std::vector<ModelTensor> all_;
  int32_t layer_ = -1;
};

// What some checkpoints hold beside the weights: frequencies that follow from config.json, the tied
// output matrix once more, and scales of an FP8 KV cache, for which no format has a place.
bool may_stay_behind(const std::string& name) {
  return is_attention_scale(name) || name.ends_with(".rotary_emb.inv_freq") ||
         name == "lm_head.weight";
}

// What is no matrix may have more extents of one, or fewer: a number, the filters of a convolution.
bool is_shape_of(const TensorView& view, const ModelTensor& tensor) {
  if (view.shape == tensor.shape) return true;
  if (tensor.shape.size() == 2 && !tensor.is_exact) return false;
  const auto longer = std::views::filter([](int64_t extent) { return extent != 1; });
  return std::ranges::equal(view.shape | longer, tensor.shape | longer);
}

constexpr std::array<std::string_view, 2> kModuleNames = {"model.mtp", "mtp."};

}  // namespace

std::vector<ModelTensor> model_tensors(const ModelConfig& config, const DecoderTraits& traits) {
  return Tensors(config, traits, traits.places[0]).all();
}

std::vector<ModelTensor> model_tensors(const ModelConfig& config, const DecoderTraits& traits,
                                       const Checkpoint& checkpoint) {
  const auto has = [&](const std::string& name) { return checkpoint.tensors().contains(name); };
  return Tensors(config, traits, find_place(traits, has)).all();
}

void add_others(const DecoderTraits& traits, const Checkpoint& checkpoint,
                const std::vector<ModelTensor>& known, ModuleTensors* others) {
  const auto has = [&](const std::string& name) { return checkpoint.tensors().contains(name); };
  const std::string layers = std::string(find_place(traits, has).body) + traits.layers;
  std::set<std::string> names;
  for (const ModelTensor& tensor : known) names.insert(tensor.name);
  for (const ModelTensor& tensor : others->tensors) names.insert(tensor.name);
  constexpr std::string_view kWeight = ".weight";
  for (const auto& [name, view] : checkpoint.tensors()) {
    if (names.contains(name) || name.starts_with(layers) || may_stay_behind(name)) continue;
    others->tensors.push_back({name, view->shape});
    if (view->shape.size() != 2 || !name.ends_with(kWeight)) continue;
    others->ignored.push_back(name.substr(0, name.size() - kWeight.size()));
  }
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
    for (const std::string body : {"model.", "model.language_model."}) {
      take(body + "layers." + number + ".", "re:.*layers\\." + number + "\\..*");
    }
  }
  return modules;
}

Result<std::vector<const TensorView*>> find_tensors(const Checkpoint& checkpoint,
                                                    const std::vector<ModelTensor>& tensors) {
  std::vector<const TensorView*> views;
  std::set<std::string> known;
  for (const ModelTensor& tensor : tensors) {
    FT_ASSIGN_OR_RETURN(const TensorView* view, checkpoint.find(tensor.name));
    if (!is_shape_of(*view, tensor)) {
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
