#include "convert/model_tensors.h"

#include <set>
#include <utility>

#include "model/convert.h"

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
    add("model.norm.weight", {config_.hidden_size});
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
  void add_projection(const std::string& name, int64_t rows, int64_t cols, bool bias) {
    add(prefix_ + name + ".weight", {rows, cols});
    if (bias) add(prefix_ + name + ".bias", {rows});
  }
  void add_layer(int32_t index) {
    layer_ = index;
    prefix_ = "model.layers." + std::to_string(index) + ".";
    const int64_t hidden = config_.hidden_size, inner = config_.intermediate_size;
    add(prefix_ + "input_layernorm.weight", {hidden});
    add_attention(hidden);
    add(prefix_ + "post_attention_layernorm.weight", {hidden});
    add_projection("mlp.gate_proj", inner, hidden, config_.mlp_bias);
    add_projection("mlp.up_proj", inner, hidden, config_.mlp_bias);
    add_projection("mlp.down_proj", hidden, inner, config_.mlp_bias);
    layer_ = -1;
  }
  void add_attention(int64_t hidden) {
    const int64_t rows = int64_t{config_.num_heads} * config_.head_dim;
    const int64_t kv_rows = int64_t{config_.num_kv_heads} * config_.head_dim;
    const bool bias = traits_.qkv_bias || config_.attention_bias;
    const size_t first = all_.size();
    add_projection("self_attn.q_proj", rows, hidden, bias);
    add_projection("self_attn.k_proj", kv_rows, hidden, bias);
    for (size_t i = first; i < all_.size(); ++i) all_[i].turned_head_dim = config_.head_dim;
    add_projection("self_attn.v_proj", kv_rows, hidden, bias);
    add_projection("self_attn.o_proj", hidden, rows, bias && !traits_.qkv_bias);
    if (!traits_.qk_norm) return;
    add(prefix_ + "self_attn.q_norm.weight", {config_.head_dim});
    add(prefix_ + "self_attn.k_norm.weight", {config_.head_dim});
  }

  const ModelConfig& config_;
  const DecoderTraits& traits_;
  std::vector<ModelTensor> all_;
  std::string prefix_;
  int32_t layer_ = -1;
};

// What some checkpoints hold beside the weights: frequencies that follow from config.json, and the
// tied output matrix once more.
bool may_stay_behind(const std::string& name) {
  return name.ends_with(".rotary_emb.inv_freq") || name == "lm_head.weight";
}

}  // namespace

std::vector<ModelTensor> model_tensors(const ModelConfig& config, const DecoderTraits& traits) {
  return Tensors(config, traits).all();
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
      return invalid_argument(view->file + ": tensor '" + tensor.name + "' has shape " +
                              view->shape_text() + ", but config.json asks for " +
                              wanted.shape_text() +
                              "; the weights and config.json must be of the same model");
    }
    FT_RETURN_IF_ERROR(check_convertible(*view));
    views.push_back(view);
    known.insert(tensor.name);
  }
  for (const auto& [name, view] : checkpoint.tensors()) {
    if (known.contains(name) || may_stay_behind(name)) continue;
    return unsupported(view->file + ": tensor '" + name +
                       "' is no part of the model that config.json describes; it would be lost");
  }
  return views;
}

}  // namespace foretoken
