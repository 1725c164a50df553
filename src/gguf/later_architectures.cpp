#include "gguf/later_architectures.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr GgufName kGlimmerTensors[] = {{"attn_gate", "self_attn.gate_proj"},
                                        {"post_attention_norm", "post_attention_layernorm"},
                                        {"ffn_norm", "pre_feedforward_layernorm"},
                                        {"post_ffw_norm", "post_feedforward_layernorm"}};
constexpr GgufKey kGlimmerKeys[] = {{"logit_scale", "output_multiplier"}};
// Norms of queries and keys have no weights but a factor, which converters write as such.
constexpr std::string_view kGlimmerFactors[] = {"attn_q_norm.weight", "attn_k_norm.weight"};

// The number that all elements of such a tensor are, which must be one.
Result<double> factor_of(const GgufFile& file, const std::string& name) {
  const auto found = file.tensors().find(name);
  const bool is_there = found != file.tensors().end() && found->second.type->name == "F32" &&
                        found->second.num_bytes > 0;
  std::vector<float> values(is_there ? static_cast<size_t>(found->second.num_bytes) / sizeof(float)
                                     : 0);
  if (is_there) FT_RETURN_IF_ERROR(file.read(found->second, values.data()));
  const bool same = std::ranges::all_of(values, [&](float value) { return value == values[0]; });
  if (is_there && same && std::isfinite(values[0]) && values[0] > 0) return double{values[0]};
  return file.error("the tensor '" + name +
                    "' must be of F32 and have one number in all places; convert the model again");
}

// Layers with a window turn and others do not.
Status read_glimmer_file(const GgufFile& file, Json& config) {
  FT_ASSIGN_OR_RETURN(const auto windowed, file.number("muse-glimmer.rope.freq_base_swa"));
  FT_ASSIGN_OR_RETURN(const auto full, file.number("muse-glimmer.rope.freq_base"));
  const double theta = windowed ? *windowed : full.value_or(10000.0);
  if (config.contains("layer_types")) {
    Json thetas = Json::array();
    for (const Json& type : config["layer_types"]) {
      thetas.push_back(type == "sliding_attention" ? Json(theta) : Json(0));
    }
    config["layer_rope_theta"] = std::move(thetas);
  }
  const auto num_layers = config["num_hidden_layers"].get<int64_t>();
  for (int64_t i = 0; i < num_layers; ++i) {
    const std::string before = "blk." + std::to_string(i) + ".";
    FT_ASSIGN_OR_RETURN(const double queries, factor_of(file, before + "attn_q_norm.weight"));
    FT_ASSIGN_OR_RETURN(const double keys, factor_of(file, before + "attn_k_norm.weight"));
    if (i == 0) config["qk_scale_factor"] = queries * keys;
    if (config["qk_scale_factor"] == queries * keys) continue;
    return file.error("layers differ in '" + before +
                      "attn_q_norm.weight', which is one factor of all; convert the model again");
  }
  return {};
}

// Text parts of models that read images, whose positions are those of texts.
constexpr GgufName kHunyuanVlTensors[] = {{"attn_q_norm", "self_attn.query_layernorm"},
                                          {"attn_k_norm", "self_attn.key_layernorm"}};

// The base of angles is scaled by a factor of its own.
Status read_hunyuan_vl_file(const GgufFile& file, Json& config) {
  FT_ASSIGN_OR_RETURN(const auto alpha, file.number("hunyuan_vl.rope.scaling.alpha"));
  if (!alpha || *alpha <= 0) return {};
  config["rope_scaling"] = {{"rope_type", "dynamic"}, {"alpha", *alpha}, {"factor", 1.0}};
  return {};
}

constexpr GgufName kGraniteSwaTensors[] = {
    {"attn_sinks.weight", "self_attn.sinks"},
    {"ffn_gate_inp", "block_sparse_moe.router"},
    {"ffn_gate_up_exps.weight", "block_sparse_moe.experts.gate_up_proj"},
    {"ffn_down_exps.weight", "block_sparse_moe.experts.down_proj"},
    {"ffn_up_shexp", "shared_mlp.input_linear"},
    {"ffn_down_shexp", "shared_mlp.output_linear"}};
constexpr GgufKey kGraniteSwaKeys[] = {
    {"attention.scale", "attention_multiplier"},
    {"embedding_scale", "embedding_multiplier"},
    {"residual_scale", "residual_multiplier"},
    {"logit_scale", "logits_scaling"},
    {"expert_count", "num_local_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_shared_feed_forward_length", "shared_intermediate_size"}};

// Layers of experts have a class of their own; a file may list the layers that turn.
Status read_granite_swa_file(const GgufFile& file, Json& config) {
  if (config.contains("num_local_experts")) {
    config["architectures"] = Json::array({"GraniteMoeSWAForCausalLM"});
    config["model_type"] = "granitemoe_swa";
  }
  const GgufValue* turning = file.find("granite_swa.attention.rope_pattern");
  if (turning == nullptr) return {};
  const auto* flags = std::get_if<std::vector<bool>>(turning);
  if (flags == nullptr) {
    return file.error(
        "'granite_swa.attention.rope_pattern' must be a list of true and false; "
        "convert the model again");
  }
  Json layers = Json::array();
  for (const bool turns : *flags) layers.push_back(turns ? 1 : 0);
  config["no_rope_layers"] = std::move(layers);
  return {};
}

constexpr GgufArchitecture kLaterArchitectures[] = {
    {.name = "muse-glimmer",
     .hf_class = "MuseGlimmerForCausalLM",
     .model_type = "muse_glimmer_text",
     .interleaves_heads = true,
     .whole_norms = true,
     .tensors = kGlimmerTensors,
     .keys = kGlimmerKeys,
     .in_config = kGlimmerFactors,
     .read = read_glimmer_file},
    {.name = "orion", .hf_class = "OrionForCausalLM", .model_type = "orion"},
    {.name = "maincoder", .hf_class = "MaincoderForCausalLM", .model_type = "maincoder"},
    {.name = "pangu-embedded",
     .hf_class = "PanguEmbeddedForCausalLM",
     .model_type = "PanguEmbedded"},
    {.name = "xverse",
     .hf_class = "LlamaForCausalLM",
     .model_type = "llama",
     .interleaves_heads = true},
    {.name = "paddleocr", .hf_class = "LlamaForCausalLM", .model_type = "llama"},
    {.name = "hunyuan_vl",
     .hf_class = "HunYuanDenseV1ForCausalLM",
     .model_type = "hunyuan_v1_dense",
     .tensors = kHunyuanVlTensors,
     .read = read_hunyuan_vl_file},
    {.name = "granite_swa",
     .hf_class = "GraniteSWAForCausalLM",
     .model_type = "granite_swa",
     .interleaves_heads = true,
     .tensors = kGraniteSwaTensors,
     .keys = kGraniteSwaKeys,
     .read = read_granite_swa_file},
};

// Why files are not read.
constexpr const char* kEncoder =
    "it makes vectors of texts by layers that are not built in any form; use an encoder of a "
    "family "
    "that foretoken inspect --families lists";
constexpr const char* kTwoParts =
    "it needs an encoder beside the decoder, which is not built; use a model without one";
constexpr const char* kDiffusion =
    "it fills in masks in any order instead of writing from left to right, which is not built; use "
    "a model that writes token by token";
constexpr const char* kRwkv =
    "it needs RWKV's time mixing, which is not built; use a model of another family";
constexpr const char* kSeeing =
    "it is made for reading images, which is not built; use a model of texts";
constexpr const char* kSound =
    "it makes sounds or reads them, which is not built; use a model of texts";
constexpr const char* kDrafter =
    "it is a drafter of a kind that is not read from GGUF files, and no model; give the drafter's "
    "Hugging Face folder to --spec-model";
constexpr const char* kFolderLoads =
    "its names and keys in GGUF files are not read; use the model's Hugging Face folder, which "
    "loads";
constexpr const char* kNoFamily =
    "its family is not built in any form; use a model of one that foretoken inspect --families "
    "lists";

struct RefusedArchitecture {
  std::string_view name;
  const char* why;
};

constexpr RefusedArchitecture kRefusedFiles[] = {
    {"arctic", kNoFamily},
    {"arwkv7", kRwkv},
    {"axk2", kFolderLoads},
    {"bailingmoe3", kNoFamily},
    {"chameleon", kSeeing},
    {"codeshell", kNoFamily},
    {"cogvlm", kSeeing},
    {"deepseek41", kNoFamily},
    {"dflash", kDrafter},
    {"dots3note", kNoFamily},
    {"dream", kDiffusion},
    {"eagle3", kDrafter},
    {"gemma4-assistant", kDrafter},
    {"glm5-next", kNoFamily},
    {"glm5next", kNoFamily},
    {"gptj", kFolderLoads},
    {"graniteswitch", kNoFamily},
    {"grok", kNoFamily},
    {"grovemoe", kNoFamily},
    {"hrm_text", kNoFamily},
    {"jina-bert-v3", kEncoder},
    {"llada", kDiffusion},
    {"llada-moe", kDiffusion},
    {"maple", kNoFamily},
    {"minimax-01", kFolderLoads},
    {"neo-bert", kEncoder},
    {"plamo", kNoFamily},
    {"plamo2", kNoFamily},
    {"plamo3", kFolderLoads},
    {"plm", kNoFamily},
    {"pockettts", kSound},
    {"qwen3tts", kSound},
    {"qwen4exp", kNoFamily},
    {"refact", kNoFamily},
    {"rnd1", kDiffusion},
    {"rwkv6", kRwkv},
    {"rwkv6qwen2", kRwkv},
    {"smallthinker", kNoFamily},
    {"t5", kTwoParts},
    {"t5encoder", kEncoder},
    {"talkie", kNoFamily},
    {"wavtokenizer-dec", kSound},
};

}  // namespace

std::span<const GgufArchitecture> later_gguf_architectures() { return kLaterArchitectures; }

std::string why_not_read(std::string_view architecture) {
  for (const RefusedArchitecture& refused : kRefusedFiles) {
    if (refused.name == architecture) return refused.why;
  }
  return "";
}

}  // namespace foretoken
