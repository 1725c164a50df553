#pragma once
#include <cstdint>
#include <variant>
#include <vector>

#include "attention/kv_cache.h"
#include "kernels/activation.h"
#include "model/config/architecture.h"
#include "model/config/config.h"
#include "model/weights/sharding.h"

namespace foretoken {

// What a layer is made of, as plain data: a sequence mixer and a feed-forward part, each one of a
// closed list, and the norms around them. The file of an architecture in arch/ composes it from
// config.json; names, sizes, counts, loading, KV and execution all follow from it.
//
// A new mixer or feed-forward part is a spec here, a struct beside it with load, scratch and
// enqueue (gqa.h, gated_mlp.h), its tensors in layer_tensors.cpp, and a place in the variants.

enum class QkNorm : uint8_t {
  kNone,
  kHead,  // each head of q and k by itself, before it turns; all with the same weights
};

// Grouped-query attention (Ainslie et al. 2023) with rotary positions.
struct GqaSpec {
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t inputs = 0;  // width of the rows that q, k and v are made of
  int32_t window = 0;  // as of LayerConfig
  bool rope = true;
  float scale = 1;    // of scores
  float softcap = 0;  // of scores; 0: none
  QkNorm qk_norm = QkNorm::kNone;
  bool qkv_bias = false;
  bool o_bias = false;
  bool fused = false;  // the tensor qkv_proj instead of q_proj, k_proj and v_proj

  int32_t q_size() const { return num_heads * head_dim; }
  int32_t kv_size() const { return num_kv_heads * head_dim; }
  int32_t qkv_size() const { return q_size() + 2 * kv_size(); }
};

// down(activation(gate x) * (up x)) (Shazeer 2020).
struct GatedMlpSpec {
  int32_t inner = 0;
  Activation activation = Activation::kSilu;
  bool bias = false;
  bool fused = false;  // the tensor gate_up_proj instead of gate_proj and up_proj
};

using MixerSpec = std::variant<GqaSpec>;
using FeedForwardSpec = std::variant<GatedMlpSpec>;

// residual += post_norm(mixer(norm(residual))), then the same with the feed-forward part. Norms are
// named as in the checkpoint, without ".weight"; null: there is none, and rows pass as they are.
struct LayerSpec {
  const char* mixer_norm = nullptr;
  MixerSpec mixer;
  const char* mixer_post_norm = nullptr;
  const char* feed_forward_norm = nullptr;
  FeedForwardSpec feed_forward;
  const char* feed_forward_post_norm = nullptr;
};

// The parts that most architectures begin with: sizes, biases and scales of the config.
GqaSpec gqa_of(const ModelConfig& config, const LayerConfig& layer);
GatedMlpSpec gated_mlp_of(const ModelConfig& config);
// Norms before both parts, under Llama's names.
LayerSpec pre_norm_layer(const MixerSpec& mixer, const FeedForwardSpec& feed_forward);
// The layer of Llama and of all that differ in numbers alone.
LayerSpec llama_layer(const ModelConfig& config, const LayerConfig& layer);

// All layers of a config (or of a rank's part of it, shard_config), as its architecture composes
// them.
std::vector<LayerSpec> compose_layers(const ModelConfig& config, const DecoderTraits& traits);

// A rank's part of a whole model's mixer or feed-forward part: heads and inner columns are divided.
GqaSpec part_of(const GqaSpec& whole, const Sharding& sharding);
GatedMlpSpec part_of(const GatedMlpSpec& whole, const Sharding& sharding);

// How a mixer keeps what later rows read: a group of one layer.
KvGroupSpec kv_layout(const MixerSpec& mixer, DType dtype, KvFormat format);

}  // namespace foretoken
