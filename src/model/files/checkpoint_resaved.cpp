#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/files/checkpoint.h"

// What releases of transformers 5 save in another form than they read, of OLMo's hybrid models,
// Kimi Linear and Nemotron H, and names that published files have beside theirs.

namespace foretoken {
namespace {

constexpr const char* kMixture = "block_sparse_moe.";
constexpr std::string_view kQueryConv = ".q_conv1d.weight";
constexpr const char* kProjections[] = {"q", "k", "v"};

struct CutConvolutions {
  std::array<const TensorView*, 3> parts{};
  std::array<int64_t, 3> rows{};  // that each should have

  // Whether together they are all of the channels, but not each its own.
  bool are_cut_elsewhere() const {
    int64_t found = 0, wanted = 0;
    bool same = true;
    for (size_t i = 0; i < 3; ++i) {
      const bool fits = parts[i]->shape.size() == 3 && parts[i]->shape[2] == parts[0]->shape[2] &&
                        parts[i]->shape[1] == 1 && parts[i]->dtype == parts[0]->dtype &&
                        parts[i]->element_bytes() >= 2;
      if (!fits) return false;
      found += parts[i]->shape[0];
      wanted += rows[i];
      same = same && parts[i]->shape[0] == rows[i];
    }
    return !same && found == wanted;
  }
};

}  // namespace

// The three convolutions of a layer are joined there and cut into equal parts again, whatever the
// numbers of their channels.
Status Checkpoint::repair_convolution(const std::string& base) {
  CutConvolutions cut;
  for (size_t i = 0; i < 3; ++i) {
    const std::string begin = base + "." + kProjections[i];
    const auto conv = tensors_.find(begin + "_conv1d.weight");
    const auto projection = tensors_.find(begin + "_proj.weight");
    if (conv == tensors_.end() || projection == tensors_.end()) return {};
    if (projection->second->shape.empty()) return {};
    cut.parts[i] = conv->second;
    cut.rows[i] = projection->second->shape[0];
  }
  if (!cut.are_cut_elsewhere()) return {};
  int64_t bytes = 0;
  for (const TensorView* part : cut.parts) bytes += part->num_bytes;
  auto& all = made_rows_.emplace_back(
      std::make_unique<std::vector<uint16_t>>(static_cast<size_t>(bytes) / sizeof(uint16_t)));
  auto* data = reinterpret_cast<std::byte*>(all->data());
  int64_t at = 0;
  for (const TensorView* part : cut.parts) {
    FT_RETURN_IF_ERROR(part->read(0, part->num_bytes, data + at));
    at += part->num_bytes;
  }
  at = 0;
  for (size_t i = 0; i < 3; ++i) {
    auto view = std::make_unique<TensorView>();
    view->name = base + "." + kProjections[i] + "_conv1d.weight";
    view->file = cut.parts[i]->file;
    view->dtype = cut.parts[i]->dtype;
    view->dtype_name = cut.parts[i]->dtype_name;
    view->shape = {cut.rows[i], 1, cut.parts[i]->shape[2]};
    view->data = data + at;
    view->num_bytes = cut.rows[i] * view->shape[2] * cut.parts[i]->element_bytes();
    at += view->num_bytes;
    tensors_[view->name] = view.get();
    made_tensors_.push_back(std::move(view));
  }
  return {};
}

// It names the MLP of a layer as a mixture of experts, beside which no mixture has such matrices.
void Checkpoint::repair_dense_layer(const std::string& base) {
  for (const char* matrix : {"gate_proj.weight", "up_proj.weight", "down_proj.weight"}) {
    const std::string own = base + "mlp." + matrix;
    if (tensors_.contains(own)) continue;
    auto renamed = tensors_.extract(base + kMixture + matrix);
    if (renamed.empty()) continue;
    renamed.key() = own;
    tensors_.insert(std::move(renamed));
  }
}

// One letter is lost from the name of the embedding; Molmo's is no module's weight.
void Checkpoint::repair_embedding() {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"backbone.embedding.weight", "backbone.embeddings.weight"},
      {"model.transformer.wte.embedding", "model.transformer.wte.weight"}};
  for (const auto& [saved, own] : kNames) {
    if (tensors_.contains(own)) continue;
    auto renamed = tensors_.extract(saved);
    if (renamed.empty()) continue;
    renamed.key() = own;
    tensors_.insert(std::move(renamed));
  }
}

// What leaves delta attention is called o_proj in published files of Ling 3, and dense, as that of
// latent attention, where transformers saved them.
void Checkpoint::repair_delta_outputs() {
  constexpr std::string_view kConv = ".attention.q_conv1d.weight", kOutput = ".attention.o_proj.";
  std::vector<std::pair<std::string, std::string>> names;
  for (const auto& [name, tensor] : tensors_) {
    const size_t at = name.find(kOutput);
    if (at == std::string::npos) continue;
    const std::string layer = name.substr(0, at);
    if (!tensors_.contains(layer + std::string(kConv))) continue;
    names.emplace_back(name, layer + ".attention.dense." + name.substr(at + kOutput.size()));
  }
  for (const auto& [saved, own] : names) {
    auto renamed = tensors_.extract(saved);
    renamed.key() = own;
    tensors_.insert(std::move(renamed));
  }
}

Status Checkpoint::repair_resaved() {
  repair_embedding();
  repair_delta_outputs();
  constexpr std::string_view kNorm = "feedforward_layer_norm.weight";
  constexpr std::string_view kGate = "block_sparse_moe.gate_proj.weight";
  std::vector<std::string> norms, convolutions, dense;
  for (const auto& [name, tensor] : tensors_) {
    if (name.ends_with(kGate)) dense.push_back(name.substr(0, name.size() - kGate.size()));
    if (name.ends_with(kNorm)) norms.push_back(name.substr(0, name.size() - kNorm.size()));
    if (name.ends_with(kQueryConv)) {
      convolutions.push_back(name.substr(0, name.size() - kQueryConv.size()));
    }
  }
  for (const std::string& layer : dense) repair_dense_layer(layer);
  // It renames the norm of layers that attend, too.
  for (const std::string& layer : norms) {
    const std::string own = layer + "post_attention_layernorm.weight";
    const bool attends = tensors_.contains(layer + "self_attn.q_proj.weight");
    if (!attends || tensors_.contains(own)) continue;
    auto renamed = tensors_.extract(layer + std::string(kNorm));
    renamed.key() = own;
    tensors_.insert(std::move(renamed));
  }
  for (const std::string& base : convolutions) FT_RETURN_IF_ERROR(repair_convolution(base));
  return {};
}

}  // namespace foretoken
