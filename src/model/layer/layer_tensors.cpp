#include "model/layer/layer_tensors.h"

namespace foretoken {
namespace {

class LayerTensorList {
 public:
  LayerTensorList(int32_t hidden_size, const NormForm& norms)
      : hidden_(hidden_size), norms_(norms) {}

  void add_layer_norm(const char* name) {
    if (name == nullptr || !norms_.weighted) return;
    all_.push_back({std::string(name) + ".weight", hidden_});
    if (norms_.bias) all_.push_back({std::string(name) + ".bias", hidden_});
  }

  void add(const GqaSpec& mixer) {
    const std::string base = mixer.base;
    const int32_t turned = mixer.head_dim;
    if (mixer.fused) {
      add_linear(base + mixer.qkv, mixer.qkv_size(), mixer.inputs, mixer.qkv_bias);
    } else {
      add_linear(base + "q_proj", mixer.q_size(), mixer.inputs, mixer.qkv_bias, turned);
      if (mixer.kv_of < 0) {
        add_linear(base + "k_proj", mixer.kv_size(), mixer.inputs, mixer.qkv_bias, turned);
      }
      if (mixer.kv_of < 0 && !mixer.keys_are_values) {
        add_linear(base + "v_proj", mixer.kv_size(), mixer.inputs, mixer.qkv_bias);
      }
    }
    add_linear(base + mixer.o, hidden_, mixer.q_size(), mixer.o_bias);
    add_head_norm(base + mixer.q_norm, mixer, mixer.num_heads);
    if (mixer.kv_of < 0) add_head_norm(base + mixer.k_norm, mixer, mixer.num_kv_heads);
  }

  void add(const GatedMlpSpec& mlp) {
    const std::string base = mlp.base;
    if (mlp.fused) {
      add_linear(base + "gate_up_proj", 2 * int64_t{mlp.inner}, hidden_, mlp.bias);
    } else {
      add_linear(base + "gate_proj", mlp.inner, hidden_, mlp.bias);
      add_linear(base + "up_proj", mlp.inner, hidden_, mlp.bias);
    }
    add_linear(base + "down_proj", hidden_, mlp.inner, mlp.bias);
  }

  void add(const PlainMlpSpec& mlp) {
    const std::string base = mlp.base;
    add_linear(base + mlp.up, mlp.inner, hidden_, mlp.bias);
    add_linear(base + mlp.down, hidden_, mlp.inner, mlp.bias);
    if (mlp.activation != Activation::kXielu) return;
    for (const char* name : {"alpha_p", "alpha_n", "beta", "eps"}) {
      all_.push_back({base + "act_fn." + name, 1});
    }
  }

  void add(const Absent&) {}

  void add_behind(const LayerSpec& layer) {
    if (layer.input_size > 0) {
      add_linear("per_layer_input_gate", layer.input_size, hidden_, false);
      add_linear("per_layer_projection", hidden_, layer.input_size, false);
      add_layer_norm("post_per_layer_input_norm");
    }
    if (layer.scaled) all_.push_back({"layer_scalar", 1});
  }

  std::vector<LayerTensor> take() { return std::move(all_); }

 private:
  void add_linear(const std::string& name, int64_t rows, int64_t cols, bool bias,
                  int32_t turned_rows = 0) {
    all_.push_back({name + ".weight", rows, cols, turned_rows});
    if (bias) all_.push_back({name + ".bias", rows, 0, turned_rows});
  }

  void add_head_norm(const std::string& name, const GqaSpec& mixer, int32_t heads) {
    const int64_t dim = mixer.head_dim;
    switch (mixer.qk_norm) {
      case QkNorm::kNone:
      case QkNorm::kUnit:
        return;
      case QkNorm::kHead:
      case QkNorm::kTurned:
        all_.push_back({name + ".weight", dim});
        return;
      case QkNorm::kWidth:
        all_.push_back({name + ".weight", heads * dim});
        return;
      case QkNorm::kOwn:
        all_.push_back({name + ".weight", heads, dim});
        return;
      case QkNorm::kOwnListed:
        for (int32_t i = 0; i < heads; ++i) {
          all_.push_back({name + ".norms." + std::to_string(i) + ".weight", dim});
        }
        return;
    }
  }

  const int32_t hidden_;
  const NormForm norms_;
  std::vector<LayerTensor> all_;
};

}  // namespace

std::vector<LayerTensor> layer_tensors(const LayerSpec& layer, const NormForm& norms,
                                       int32_t hidden_size) {
  LayerTensorList list(hidden_size, norms);
  list.add_layer_norm(layer.mixer_norm);
  std::visit([&](const auto& mixer) { list.add(mixer); }, layer.mixer);
  list.add_layer_norm(layer.mixer_post_norm);
  list.add_layer_norm(layer.feed_forward_norm);
  std::visit([&](const auto& part) { list.add(part); }, layer.feed_forward);
  list.add_layer_norm(layer.feed_forward_post_norm);
  list.add_behind(layer);
  return list.take();
}

}  // namespace foretoken
