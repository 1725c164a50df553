#include "model/files/tensor_names.h"

#include <string_view>
#include <utility>

namespace foretoken {

std::string plain_tensor_name(const std::string& name) {
  std::string plain = name;
  for (const std::string_view part :
       {"_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "base_layer."}) {
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

bool is_of_training(std::string_view name) {
  for (const std::string_view buffer : {"inv_freq", "cos_cached", "sin_cached"}) {
    if (name.ends_with("rotary_emb." + std::string(buffer))) return true;
  }
  return name.starts_with("v_head.") || name.starts_with("value_head.");
}

bool is_adapter_tensor(const std::string& name) {
  return name.find(".lora_A.") != std::string::npos || name.find(".lora_B.") != std::string::npos;
}

std::string name_without_mistral(const std::string& name) {
  constexpr std::pair<std::string_view, std::string_view> kWhole[] = {
      {"tok_embeddings.weight", "model.embed_tokens.weight"},
      {"norm.weight", "model.norm.weight"},
      {"output.weight", "lm_head.weight"}};
  constexpr std::pair<std::string_view, std::string_view> kOfLayers[] = {
      {"attention.wq.weight", "self_attn.q_proj.weight"},
      {"attention.wk.weight", "self_attn.k_proj.weight"},
      {"attention.wv.weight", "self_attn.v_proj.weight"},
      {"attention.wo.weight", "self_attn.o_proj.weight"},
      {"attention_norm.weight", "input_layernorm.weight"},
      {"feed_forward.w1.weight", "mlp.gate_proj.weight"},
      {"feed_forward.w2.weight", "mlp.down_proj.weight"},
      {"feed_forward.w3.weight", "mlp.up_proj.weight"},
      {"ffn_norm.weight", "post_attention_layernorm.weight"}};
  for (const auto& [own, usual] : kWhole) {
    if (name == own) return std::string(usual);
  }
  for (const auto& [own, usual] : kOfLayers) {
    if (!name.starts_with("layers.") || !name.ends_with("." + std::string(own))) continue;
    return "model." + name.substr(0, name.size() - own.size()) + std::string(usual);
  }
  return name;
}

}  // namespace foretoken
