#include "model/layer/layer_tensors.h"

namespace foretoken {
namespace {

class LayerTensorList {
 public:
  explicit LayerTensorList(int32_t hidden_size) : hidden_(hidden_size) {}

  void add_norm(const std::string& name, int64_t size) { all_.push_back({name + ".weight", size}); }
  void add_layer_norm(const char* name) {
    if (name != nullptr) add_norm(name, hidden_);
  }

  void add(const GqaSpec& mixer) {
    const std::string base = "self_attn.";
    const int32_t turned = mixer.head_dim;
    if (mixer.fused) {
      add_linear(base + "qkv_proj", mixer.qkv_size(), mixer.inputs, mixer.qkv_bias);
    } else {
      add_linear(base + "q_proj", mixer.q_size(), mixer.inputs, mixer.qkv_bias, turned);
      add_linear(base + "k_proj", mixer.kv_size(), mixer.inputs, mixer.qkv_bias, turned);
      add_linear(base + "v_proj", mixer.kv_size(), mixer.inputs, mixer.qkv_bias);
    }
    add_linear(base + "o_proj", hidden_, mixer.q_size(), mixer.o_bias);
    if (mixer.qk_norm == QkNorm::kNone) return;
    add_norm(base + "q_norm", mixer.head_dim);
    add_norm(base + "k_norm", mixer.head_dim);
  }

  void add(const GatedMlpSpec& mlp) {
    const std::string base = "mlp.";
    if (mlp.fused) {
      add_linear(base + "gate_up_proj", 2 * int64_t{mlp.inner}, hidden_, mlp.bias);
    } else {
      add_linear(base + "gate_proj", mlp.inner, hidden_, mlp.bias);
      add_linear(base + "up_proj", mlp.inner, hidden_, mlp.bias);
    }
    add_linear(base + "down_proj", hidden_, mlp.inner, mlp.bias);
  }

  std::vector<LayerTensor> take() { return std::move(all_); }

 private:
  void add_linear(const std::string& name, int64_t rows, int64_t cols, bool bias,
                  int32_t turned_rows = 0) {
    all_.push_back({name + ".weight", rows, cols, turned_rows});
    if (bias) all_.push_back({name + ".bias", rows, 0, turned_rows});
  }

  const int32_t hidden_;
  std::vector<LayerTensor> all_;
};

}  // namespace

std::vector<LayerTensor> layer_tensors(const LayerSpec& layer, int32_t hidden_size) {
  LayerTensorList list(hidden_size);
  list.add_layer_norm(layer.mixer_norm);
  std::visit([&](const auto& mixer) { list.add(mixer); }, layer.mixer);
  list.add_layer_norm(layer.mixer_post_norm);
  list.add_layer_norm(layer.feed_forward_norm);
  std::visit([&](const auto& part) { list.add(part); }, layer.feed_forward);
  list.add_layer_norm(layer.feed_forward_post_norm);
  return list.take();
}

}  // namespace foretoken
