#include "gguf/hf_names.h"

#include <algorithm>
#include <utility>

namespace foretoken {
namespace {

using NamePair = std::pair<std::string_view, std::string_view>;

constexpr NamePair kOfModel[] = {{"token_embd.weight", "model.embed_tokens.weight"},
                                 {"output_norm.weight", "model.norm.weight"},
                                 {"output.weight", "lm_head.weight"}};

// Behind "blk.<n>." and "model.layers.<n>.", in front of ".weight" or ".bias".
constexpr NamePair kOfLayer[] = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"}};

constexpr GgufArchitecture kArchitectures[] = {
    {"llama", "LlamaForCausalLM", "llama", true},
    {"qwen2", "Qwen2ForCausalLM", "qwen2", false},
    {"qwen3", "Qwen3ForCausalLM", "qwen3", false},
};

// What GGUF files know under another name.
constexpr NamePair kWrittenAs[] = {{"MistralForCausalLM", "LlamaForCausalLM"}};

// What comes before the number of a layer.
constexpr NamePair kLayer = {"blk.", "model.layers."};

// A name of `known` spelling in the `wanted` one.
std::optional<std::string> renamed(std::string_view name, std::string_view NamePair::* known,
                                   std::string_view NamePair::* wanted) {
  for (const NamePair& pair : kOfModel) {
    if (pair.*known == name) return std::string(pair.*wanted);
  }
  if (!name.starts_with(kLayer.*known)) return std::nullopt;
  const std::string_view rest = name.substr((kLayer.*known).size());
  const size_t dot = rest.find('.');
  const size_t last = rest.rfind('.');
  if (dot == std::string_view::npos || last == dot) return std::nullopt;
  const std::string_view part = rest.substr(dot + 1, last - dot - 1);
  for (const NamePair& pair : kOfLayer) {
    if (pair.*known != part) continue;
    return std::string(kLayer.*wanted) + std::string(rest.substr(0, dot + 1)) +
           std::string(pair.*wanted) + std::string(rest.substr(last));
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> hf_tensor_name(std::string_view gguf_name) {
  return renamed(gguf_name, &NamePair::first, &NamePair::second);
}

std::optional<std::string> gguf_tensor_name(std::string_view hf_name) {
  return renamed(hf_name, &NamePair::second, &NamePair::first);
}

const GgufArchitecture* gguf_architecture_for(std::string_view hf_class) {
  for (const auto& [name, written] : kWrittenAs) {
    if (hf_class == name) hf_class = written;
  }
  for (const GgufArchitecture& architecture : kArchitectures) {
    if (architecture.hf_class == hf_class) return &architecture;
  }
  return nullptr;
}

std::string gguf_hf_classes() {
  std::string names;
  for (const GgufArchitecture& architecture : kArchitectures) {
    names += (names.empty() ? "" : ", ") + std::string(architecture.hf_class);
  }
  for (const auto& [name, written] : kWrittenAs) names += ", " + std::string(name);
  return names;
}

Result<const GgufArchitecture*> gguf_architecture(const GgufFile& file) {
  FT_ASSIGN_OR_RETURN(const auto name, file.text("general.architecture"));
  std::string known;
  for (const GgufArchitecture& architecture : kArchitectures) {
    if (name == architecture.name) return &architecture;
    known += (known.empty() ? "" : ", ") + std::string(architecture.name);
  }
  return unsupported(file.path() + ": GGUF files of the architecture '" + name.value_or("") +
                     "' are not read; those that are: " + known +
                     ". Use the model's Hugging Face folder instead");
}

}  // namespace foretoken
