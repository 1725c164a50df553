#include "gguf/hf_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <regex>
#include <utility>

#include "gguf/later_architectures.h"

namespace foretoken {
namespace {

using Spelling = std::string_view GgufName::*;

constexpr GgufName kOfModel[] = {{"token_embd.weight", "model.embed_tokens.weight"},
                                 {"output_norm.weight", "model.norm.weight"},
                                 {"output_norm.bias", "model.norm.bias"},
                                 {"output.weight", "lm_head.weight"},
                                 {"output.bias", "lm_head.bias"}};

constexpr std::span<const GgufName> kOfAnyModel = kOfModel;

// Behind "blk.<n>." and "model.layers.<n>.", in front of ".weight" or ".bias".
constexpr GgufName kOfLayer[] = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"}};

// What GGUF files know under another name.
constexpr std::pair<std::string_view, std::string_view> kWrittenAs[] = {
    {"MistralForCausalLM", "LlamaForCausalLM"}};

// What comes before the number of a layer.
constexpr std::string_view kLayer = "blk.";

// Frequencies of rotary embeddings.
constexpr std::string_view kConfigTensors[] = {"rope_freqs.weight", "rope_factors_long.weight",
                                               "rope_factors_short.weight"};
// Of towers for images and sounds, and of what leads from them into the model.
constexpr std::string_view kMediaFronts[] = {"v.", "a.", "mm.", "resampler."};

const GgufName* find_name(std::span<const GgufName> names, Spelling known, std::string_view part) {
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const GgufName& name) { return name.*known == part; });
  return found == names.end() ? nullptr : &*found;
}

// Names of an architecture go before Llama's, and a name that it gives another meaning has that
// one alone.
const GgufName* find_layer_name(const GgufArchitecture& architecture, Spelling known,
                                Spelling wanted, std::string_view part) {
  if (const GgufName* own = find_name(architecture.tensors, known, part)) return own;
  const GgufName* common = find_name(kOfLayer, known, part);
  if (common == nullptr) return nullptr;
  return find_name(architecture.tensors, wanted, common->*wanted) == nullptr ? common : nullptr;
}

// A name of `known` spelling in the `wanted` one.
std::optional<std::string> renamed(const GgufArchitecture& architecture, std::string_view name,
                                   Spelling known, Spelling wanted) {
  const GgufName layer = {kLayer, architecture.layers};
  for (const std::span<const GgufName> names : {architecture.model_tensors, kOfAnyModel}) {
    if (const GgufName* found = find_name(names, known, name)) return std::string(found->*wanted);
  }
  if (!name.starts_with(layer.*known)) return std::nullopt;
  const std::string_view rest = name.substr((layer.*known).size());
  const size_t dot = rest.find('.');
  const size_t last = rest.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view number = rest.substr(0, dot + 1);
  if (const GgufName* whole = find_name(architecture.tensors, known, rest.substr(dot + 1))) {
    return std::string(layer.*wanted) + std::string(number) + std::string(whole->*wanted);
  }
  if (last == dot) return std::nullopt;
  const GgufName* found =
      find_layer_name(architecture, known, wanted, rest.substr(dot + 1, last - dot - 1));
  if (found == nullptr) return std::nullopt;
  return std::string(layer.*wanted) + std::string(number) + std::string(found->*wanted) +
         std::string(rest.substr(last));
}

// Of files from before the experts of a layer were one tensor: blk.0.ffn_gate.3.weight is the
// fourth of blk.0.ffn_gate_exps.weight.
std::optional<std::string> name_of_expert(const GgufArchitecture& architecture,
                                          std::string_view gguf_name) {
  static const std::regex kForm(R"((blk\.\d{1,6}\.ffn_(?:gate|up|down))\.(\d{1,6})\.weight)");
  std::match_results<std::string_view::const_iterator> match;
  if (gguf_name.size() > 64 ||
      !std::regex_match(gguf_name.begin(), gguf_name.end(), match, kForm)) {
    return std::nullopt;
  }
  constexpr std::string_view kExperts = ".experts.";
  auto all = renamed(architecture, match[1].str() + "_exps.weight", &GgufName::gguf, &GgufName::hf);
  const size_t at = all ? all->find(kExperts) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  return all->insert(at + kExperts.size(), match[2].str() + ".");
}

}  // namespace

std::optional<std::string> hf_tensor_name(const GgufArchitecture& architecture,
                                          std::string_view gguf_name) {
  auto name = renamed(architecture, gguf_name, &GgufName::gguf, &GgufName::hf);
  return name ? name : name_of_expert(architecture, gguf_name);
}

int64_t layer_of_tensor(std::string_view gguf_name) {
  if (!gguf_name.starts_with(kLayer)) return -1;
  const std::string_view rest = gguf_name.substr(kLayer.size());
  const char* end = rest.data() + rest.size();
  int64_t layer = 0;
  const auto number = std::from_chars(rest.data(), end, layer);
  return number.ec == std::errc() && number.ptr != end && *number.ptr == '.' ? layer : -1;
}

bool reads_modules(const GgufArchitecture& architecture) {
  return !architecture.modules.empty() ||
         find_name(architecture.tensors, &GgufName::gguf, "nextn.eh_proj") != nullptr;
}

std::optional<std::string> hf_tensor_name(const GgufArchitecture& architecture,
                                          std::string_view gguf_name, int64_t num_layers) {
  auto usual = hf_tensor_name(architecture, gguf_name);
  const int64_t layer = layer_of_tensor(gguf_name);
  if (architecture.modules.empty() || layer < num_layers) return usual;
  const std::string_view part = gguf_name.substr(gguf_name.find('.', kLayer.size()) + 1);
  if (const GgufName* end = find_name(architecture.module_ends, &GgufName::gguf, part)) {
    return std::string(end->hf);
  }
  const std::string front =
      std::string(architecture.modules) + std::to_string(layer - num_layers) + ".";
  if (const GgufName* own = find_name(architecture.module_tensors, &GgufName::gguf, part)) {
    return front + std::string(own->hf);
  }
  const std::string of_layer = std::string(architecture.layers) + std::to_string(layer) + ".";
  const bool is_named = usual && usual->starts_with(of_layer);
  return front + (is_named ? usual->substr(of_layer.size()) : std::string(part));
}

std::optional<std::string> gguf_tensor_name(const GgufArchitecture& architecture,
                                            std::string_view hf_name) {
  return renamed(architecture, hf_name, &GgufName::hf, &GgufName::gguf);
}

bool is_config_tensor(const GgufArchitecture& architecture, std::string_view gguf_name) {
  if (std::ranges::find(kConfigTensors, gguf_name) != std::end(kConfigTensors)) return true;
  if (!gguf_name.starts_with(kLayer)) return false;
  const std::string_view rest = gguf_name.substr(kLayer.size());
  const std::string_view own = rest.substr(std::min(rest.find('.'), rest.size() - 1) + 1);
  return std::ranges::find(architecture.in_config, own) != architecture.in_config.end();
}

bool is_media_tensor(std::string_view gguf_name) {
  return std::any_of(std::begin(kMediaFronts), std::end(kMediaFronts),
                     [&](std::string_view front) { return gguf_name.starts_with(front); });
}

const GgufArchitecture* gguf_architecture_for(std::string_view hf_class) {
  for (const auto& [name, written] : kWrittenAs) {
    if (hf_class == name) hf_class = written;
  }
  for (const GgufArchitecture& architecture : gguf_architectures()) {
    if (architecture.is_written && architecture.hf_class == hf_class) return &architecture;
  }
  return nullptr;
}

std::string gguf_hf_classes() {
  std::string names;
  for (const GgufArchitecture& architecture : gguf_architectures()) {
    if (!architecture.is_written) continue;
    names += (names.empty() ? "" : ", ") + std::string(architecture.hf_class);
  }
  for (const auto& [name, written] : kWrittenAs) names += ", " + std::string(name);
  return names;
}

namespace {

// Files that llama.cpp writes beside models are told what they are.
Status check_is_model(const GgufFile& file, const std::string& architecture) {
  FT_ASSIGN_OR_RETURN(const auto type, file.text("general.type"));
  if (type == "adapter") {
    return unsupported(
        file.path() +
        " is a LoRA adapter and no model, and adapters are not read from GGUF files; "
        "give the model's file, and the PEFT folder of the adapter to --lora-modules");
  }
  if (type == "mmproj" || architecture == "clip") {
    return unsupported(file.path() +
                       " is what a model sees or hears with (mmproj) and no model; give the file "
                       "of the model beside it");
  }
  if (type == "imatrix") {
    return unsupported(file.path() +
                       " is an importance matrix and no model; foretoken convert takes it with "
                       "--imatrix");
  }
  return {};
}

}  // namespace

Result<const GgufArchitecture*> gguf_architecture(const GgufFile& file) {
  FT_ASSIGN_OR_RETURN(const auto name, file.text("general.architecture"));
  FT_RETURN_IF_ERROR(check_is_model(file, name.value_or("")));
  std::string known;
  if (const std::string why = why_not_read(name.value_or("")); !why.empty()) {
    return unsupported(file.path() + ": GGUF files of the architecture '" + *name +
                       "' are not read: " + why);
  }
  for (const GgufArchitecture& architecture : gguf_architectures()) {
    if (name == architecture.name) return &architecture;
    known += (known.empty() ? "" : ", ") + std::string(architecture.name);
  }
  return unsupported(file.path() + ": GGUF files of the architecture '" + name.value_or("") +
                     "' are not read; those that are: " + known +
                     ". Use the model's Hugging Face folder instead");
}

}  // namespace foretoken
