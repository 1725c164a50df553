#include "model/files/tensor_names.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace foretoken {

std::string plain_tensor_name(const std::string& name) {
  std::string plain = name;
  for (const std::string_view part :
       {"_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "base_layer.",
        "modules_to_save.default.", "modules_to_save."}) {
    for (size_t at = 0; (at = plain.find(part, at)) != std::string::npos;) {
      if (at == 0 || plain[at - 1] == '.') {
        plain.erase(at, part.size());
      } else {
        at += part.size();
      }
    }
  }
  for (const std::string_view start : {"module.", "base_model.model."}) {
    if (plain.starts_with(start)) plain.erase(0, start.size());
  }
  return plain;
}

std::string_view wrapper_of(std::string_view name) {
  for (const std::string_view first :
       {"model.embed_tokens.weight", "transformer.wte.weight", "gpt_neox.embed_in.weight"}) {
    if (!name.ends_with(first)) continue;
    const std::string_view before = name.substr(0, name.size() - first.size());
    if (before.ends_with('.') && !before.ends_with("language_model.")) return before;
  }
  return {};
}

// Phi-4 Multimodal's, for rows of images and speech.
static bool is_of_towers(std::string_view name) {
  for (const std::string_view part :
       {".lora_A.vision.", ".lora_B.vision.", ".lora_A.speech.", ".lora_B.speech."}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}

bool is_of_training(std::string_view name) {
  for (const std::string_view buffer : {"inv_freq", "cos_cached", "sin_cached"}) {
    if (name.ends_with("rotary_emb." + std::string(buffer))) return true;
  }
  for (const std::string_view head : {"v_head.", "value_head.", "score.", "cls.output."}) {
    if (name.starts_with(head)) return true;
  }
  return is_of_towers(name);
}

bool is_adapter_tensor(const std::string& name) {
  if (is_of_towers(name)) return false;
  return name.find(".lora_A.") != std::string::npos || name.find(".lora_B.") != std::string::npos;
}

namespace {

using NamePair = std::pair<std::string_view, std::string_view>;

// Behind "layers.N.", and behind that of experts.
constexpr NamePair kMistralLayer[] = {{"attention.wq", "self_attn.q_proj"},
                                      {"attention.wk", "self_attn.k_proj"},
                                      {"attention.wv", "self_attn.v_proj"},
                                      {"attention.wo", "self_attn.o_proj"},
                                      {"attention.wq_a", "self_attn.q_a_proj"},
                                      {"attention.q_a_norm", "self_attn.q_a_layernorm"},
                                      {"attention.wq_b", "self_attn.q_b_proj"},
                                      {"attention.wkv_a_with_mqa", "self_attn.kv_a_proj_with_mqa"},
                                      {"attention.kv_a_norm", "self_attn.kv_a_layernorm"},
                                      {"attention.wkv_b", "self_attn.kv_b_proj"},
                                      {"attention_norm", "input_layernorm"},
                                      {"feed_forward.w1", "mlp.gate_proj"},
                                      {"feed_forward.w2", "mlp.down_proj"},
                                      {"feed_forward.w3", "mlp.up_proj"},
                                      {"feed_forward.gate", "block_sparse_moe.gate"},
                                      {"gate", "mlp.gate"},
                                      {"shared_experts.w1", "mlp.shared_experts.gate_proj"},
                                      {"shared_experts.w2", "mlp.shared_experts.down_proj"},
                                      {"shared_experts.w3", "mlp.shared_experts.up_proj"},
                                      {"ffn_norm", "post_attention_layernorm"}};
constexpr NamePair kMistralExperts[] = {{"feed_forward.experts.", "block_sparse_moe.experts."},
                                        {"experts.", "mlp.experts."}};
constexpr NamePair kMistralExpert[] = {{"w1", "gate_proj"}, {"w2", "down_proj"}, {"w3", "up_proj"}};
constexpr NamePair kMistralWhole[] = {
    {"tok_embeddings", "model.embed_tokens"}, {"norm", "model.norm"}, {"output", "lm_head"}};
// Scales of a layer's queries, keys and values.
constexpr NamePair kMistralKeys[] = {
    {"attention.q_fake_quantizer.qscale_act", "self_attn.attn.q_scale"},
    {"attention.kv_fake_quantizer.qscale_act", "self_attn.attn.kv_scale"},
    {"attention.k_fake_quantizer.qscale_act", "self_attn.attn.k_scale"},
    {"attention.v_fake_quantizer.qscale_act", "self_attn.attn.v_scale"}};
// What a tensor is of its module: Mistral's own FP8, and the parts of compressed-tensors.
constexpr NamePair kMistralEndings[] = {{".weight", ".weight"},
                                        {".qscale_weight", ".weight_scale_inv"},
                                        {".qscale_act", ".activation_scale"},
                                        {".weight_scale", ".weight_scale"},
                                        {".weight_packed", ".weight_packed"},
                                        {".weight_shape", ".weight_shape"},
                                        {".weight_global_scale", ".weight_global_scale"},
                                        {".weight_zero_point", ".weight_zero_point"},
                                        {".weight_g_idx", ".weight_g_idx"},
                                        {".input_scale", ".input_scale"},
                                        {".input_global_scale", ".input_global_scale"}};

std::optional<std::string> renamed(std::span<const NamePair> table, std::string_view name) {
  const auto known = std::ranges::find(table, name, &NamePair::first);
  if (known == table.end()) return std::nullopt;
  return std::string(known->second);
}

// Of a module behind "layers.N.". The matrices of Mixtral's experts have one name in both layouts.
std::optional<std::string> mistral_module(std::string_view name) {
  for (const auto& [own, usual] : kMistralExperts) {
    if (!name.starts_with(own)) continue;
    const std::string_view rest = name.substr(own.size());
    const size_t at = rest.find('.');
    if (at == rest.npos) return std::nullopt;
    std::string_view matrix = rest.substr(at + 1);
    const auto plain = renamed(kMistralExpert, matrix);
    if (!plain) return std::nullopt;
    const bool is_mixtral = usual.starts_with("block_sparse_moe");
    return std::string(usual) + std::string(rest.substr(0, at + 1)) +
           (is_mixtral ? std::string(matrix) : *plain);
  }
  return renamed(kMistralLayer, name);
}

}  // namespace

bool is_mistral_vision(std::string_view name) {
  return std::ranges::any_of(std::array{"vision_encoder.", "vision_language_adapter.",
                                        "patch_merger.", "pre_mm_projector_norm."},
                             [&](const char* start) { return name.starts_with(start); });
}

std::string name_without_mistral(const std::string& name) {
  constexpr std::string_view kLayers = "layers.";
  const bool is_of_layer = name.starts_with(kLayers);
  const size_t dot = is_of_layer ? name.find('.', kLayers.size()) : name.npos;
  if (is_of_layer && dot == name.npos) return name;
  const std::string layer = is_of_layer ? "model." + name.substr(0, dot + 1) : "";
  const std::string_view inside =
      is_of_layer ? std::string_view(name).substr(dot + 1) : std::string_view(name);
  if (is_of_layer) {
    if (const auto scale = renamed(kMistralKeys, inside)) return layer + *scale;
  }
  for (const auto& [ending, usual] : kMistralEndings) {
    if (!inside.ends_with(ending)) continue;
    const std::string_view module = inside.substr(0, inside.size() - ending.size());
    const auto known = is_of_layer ? mistral_module(module) : renamed(kMistralWhole, module);
    return known ? layer + *known + std::string(usual) : name;
  }
  return name;
}

}  // namespace foretoken
