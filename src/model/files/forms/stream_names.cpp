#include "model/files/forms/stream_names.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace foretoken {
namespace {

// Beginnings of names, of which the first that fits is changed.
struct NewBeginning {
  std::string_view from;
  std::string_view to;
};

constexpr NewBeginning kOutsideLayers[] = {
    {"embed_tokens.", "embed."}, {"hc_head.hc_", "hc_head_"}, {"lm_head.", "head."}};

// Behind a layer's number.
constexpr NewBeginning kOfLayers[] = {
    {"attn.norm.", "attn.kv_norm."},
    {"attn_hc.", "hc_attn_"},
    {"ffn_hc.", "hc_ffn_"},
    {"input_layernorm.", "attn_norm."},
    {"post_attention_layernorm.", "ffn_norm."},
    {"mlp.gate.e_score_correction_bias", "ffn.gate.bias"},
    {"mlp.experts.down_proj", "ffn.experts.w2"},
    {"mlp.shared_experts.gate_proj.", "ffn.shared_experts.w1."},
    {"mlp.shared_experts.up_proj.", "ffn.shared_experts.w3."},
    {"mlp.shared_experts.down_proj.", "ffn.shared_experts.w2."},
    {"mlp.", "ffn."},
    {"self_attn.compressor.indexer.gate_proj.", "attn.indexer.compressor.wgate."},
    {"self_attn.compressor.indexer.kv_proj.", "attn.indexer.compressor.wkv."},
    {"self_attn.compressor.indexer.kv_norm.", "attn.indexer.compressor.norm."},
    {"self_attn.compressor.indexer.position_bias", "attn.indexer.compressor.ape"},
    {"self_attn.compressor.indexer.q_b_proj.", "attn.indexer.wq_b."},
    {"self_attn.compressor.indexer.scorer.", "attn.indexer."},
    {"self_attn.compressor.gate_proj.", "attn.compressor.wgate."},
    {"self_attn.compressor.kv_proj.", "attn.compressor.wkv."},
    {"self_attn.compressor.kv_norm.", "attn.compressor.norm."},
    {"self_attn.compressor.position_bias", "attn.compressor.ape"},
    {"self_attn.kv_proj.", "attn.wkv."},
    {"self_attn.o_a_proj.", "attn.wo_a."},
    {"self_attn.o_b_proj.", "attn.wo_b."},
    {"self_attn.q_a_norm.", "attn.q_norm."},
    {"self_attn.q_a_proj.", "attn.wq_a."},
    {"self_attn.q_b_proj.", "attn.wq_b."},
    {"self_attn.sinks", "attn.attn_sink"},
    {"self_attn.", "attn."},
};

std::string with_new_beginning(const std::string& name, std::span<const NewBeginning> beginnings) {
  for (const auto& [from, to] : beginnings) {
    if (name.starts_with(from)) return std::string(to) + name.substr(from.size());
  }
  return name;
}

// Every `from` in a name is changed.
constexpr NewBeginning kMoved[] = {
    {"hc_pre.hc_head.", "hc_head."},
    {"hc_pre.hc_attn_layer.", "hc_attn_layer.hc_pre."},
    {"hc_pre.hc_mlp_layer.", "hc_mlp_layer.hc_pre."},
    {"mlp.linear_gate.", "mlp.gate_proj."},
    {"mlp.shared_experts.linear_gate.", "mlp.shared_experts.gate_proj."}};

}  // namespace

bool has_own_stream_names(const std::map<std::string, const TensorView*>& tensors) {
  return tensors.contains("model.hc_head.hc_fn");
}

std::string published_stream_name(const std::string& name) {
  constexpr std::string_view kBody = "model.", kLayers = "layers.";
  const std::string own = name.starts_with(kBody) ? name.substr(kBody.size()) : name;
  if (!own.starts_with(kLayers)) return with_new_beginning(own, kOutsideLayers);
  const size_t behind = own.find('.', kLayers.size());
  if (behind == std::string::npos) return own;
  return own.substr(0, behind + 1) + with_new_beginning(own.substr(behind + 1), kOfLayers);
}

bool has_moved_stream_names(const std::map<std::string, const TensorView*>& tensors) {
  return std::ranges::any_of(tensors, [](const auto& tensor) {
    return tensor.first.ends_with(".hc_pre.hc_head.hc_head_fn");
  });
}

std::string unmoved_stream_name(const std::string& name) {
  for (const auto& [from, to] : kMoved) {
    const size_t at = name.find(from);
    if (at != std::string::npos) return std::string(name).replace(at, from.size(), to);
  }
  return name;
}

}  // namespace foretoken
